// SPDX-License-Identifier: Apache-2.0

package env

import "syscall"

// childAttributes puts the child in a process group of its own, so that Ctrl-C in a terminal
// reaches only the program that decides when to stop, and ends it when that program is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
