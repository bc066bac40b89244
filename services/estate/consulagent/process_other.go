//go:build !linux

package consulagent

import "syscall"

// sysProcAttr puts the program into a process group of its own, so that Ctrl-C
// does not stop the agent before those who use it.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (r *run) whole(started chan<- error) { r.startAndWait(started) }
