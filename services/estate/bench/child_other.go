//go:build !linux

package bench

import "syscall"

func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (c *child) whole(started chan<- error) { c.run(started) }
