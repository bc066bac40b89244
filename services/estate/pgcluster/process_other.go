//go:build !linux

package pgcluster

import "syscall"

// sysProcAttr puts the program into a process group of its own, so that Ctrl-C
// does not stop the server before those who use it.
func sysProcAttr(o *owner) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if o != nil {
		a.Credential = o.credential()
	}
	return a
}

func (s *server) run(started chan<- error) { s.startAndWait(started) }
