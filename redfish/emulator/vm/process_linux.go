// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"os/exec"
	"syscall"
)

// alone puts a program into a process group of its own, which dies with us.
func alone(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
