package pgcluster

import (
	"runtime"
	"syscall"
)

// sysProcAttr puts the program into a process group of its own, so that Ctrl-C
// does not stop the server before those who use it, and has the kernel stop it
// when this process dies without having done so.
func sysProcAttr(o *owner) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	if o != nil {
		a.Credential = o.credential()
	}
	return a
}

// run starts the process and waits for its end. The thread is held for as long:
// Pdeathsig is sent when the thread that started the process ends, golang/go#27505.
func (s *server) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.startAndWait(started)
}
