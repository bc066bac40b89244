//go:build !linux

package bench

import (
	"context"
	"time"
)

func constantLoad(context.Context, string, string, pace) ([]time.Duration, error) {
	return nil, ErrMachine
}
