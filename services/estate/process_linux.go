package estate

import (
	"runtime"
	"syscall"
)

// sysProcAttr puts a process into a group of its own, so that Ctrl-C in the
// terminal reaches us alone and we stop it in order, and has the kernel kill it
// when we die without having done so.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// whole starts the process and waits for its end. It holds its thread for as
// long: Pdeathsig is sent when the thread that started the process ends,
// golang/go#27505.
func (r *run) whole(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r.startAndWait(started)
}
