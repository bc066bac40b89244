//go:build !linux

package bench

import (
	"context"
	"time"
)

func constantLoad(context.Context, string, string, float64, time.Duration, int) ([]time.Duration, error) {
	return nil, ErrMachine
}
