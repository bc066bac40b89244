//go:build !linux

package bench

import "context"

func constantLoad(context.Context, string, string, pace) ([]time.Duration, error) {
	return nil, ErrMachine
}
