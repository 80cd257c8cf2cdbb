// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package env

import "syscall"

// childAttributes puts the child in a process group of its own, so that Ctrl-C in a terminal
// reaches only the program that decides when to stop. Only Linux can end a child with its parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
