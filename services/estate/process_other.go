//go:build !linux

package estate

import "syscall"

// sysProcAttr puts a process into a group of its own, so that Ctrl-C in the
// terminal reaches us alone and we stop it in order.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// whole starts the process and waits for its end.
func (r *run) whole(started chan<- error) { r.startAndWait(started) }
