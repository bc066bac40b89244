package consulagent

import (
	"runtime"
	"syscall"
)

// sysProcAttr puts the program into a process group of its own, so that Ctrl-C
// does not stop the agent before those who use it, and has the kernel stop it when
// this process dies without having done so.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// whole is the life of a run. The thread is held for as long: Pdeathsig is sent
// when the thread that started the process ends, golang/go#27505.
func (r *run) whole(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r.startAndWait(started)
}
