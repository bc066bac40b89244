package bench

import (
	"runtime"
	"syscall"
)

// childAttr puts a program into a group of its own, so that Ctrl-C reaches us alone,
// and has the kernel ask it to end when we die without having done so.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// whole is the life of a program. It holds its thread for as long: Pdeathsig is sent
// when the thread that started the process ends, golang/go#27505.
func (c *child) whole(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.run(started)
}
