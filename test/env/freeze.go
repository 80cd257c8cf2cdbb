// SPDX-License-Identifier: Apache-2.0

package env

import "syscall"

// Freeze stops the present process where it stands, until the function that it returns is called. False: there is none.
func (o *Operator) Freeze() (thaw func(), frozen bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.child == nil || o.stopped {
		return func() {}, false
	}
	pid := o.child.PID()
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return func() {}, false
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }, true
}
