//go:build unix

package main

import (
	"math"
	"syscall"
)

// descriptorLimit returns how many descriptors the process may have, 0 when that is
// not known.
func descriptorLimit() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int(min(uint64(l.Cur), math.MaxInt32))
}
