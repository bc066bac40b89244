//go:build !linux

package forward

import (
	"errors"
	"syscall"
)

// seesEnds says that the end of a socket is not seen before its bytes are read.
const seesEnds = false

func awaitGone(syscall.RawConn) error { return errors.ErrUnsupported }
