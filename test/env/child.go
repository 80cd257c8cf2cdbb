// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// Child is a program beside the control plane, such as the built manager. It never outlives this program, not even one
// that is killed.
type Child struct{ process *process }

// StartChild runs a program with its output appended to LogDir()/name.log.
func (e *Env) StartChild(name, path string, args ...string) (*Child, error) {
	p, err := startProcess(name, e.LogDir(), path, args...)
	if err != nil {
		return nil, err
	}
	return &Child{process: p}, nil
}

// AwaitReady asks until ready returns nil. It gives up when the child ends or the time is over, with the end of the
// child's log in the error.
func (c *Child) AwaitReady(ctx context.Context, limit time.Duration, ready func(context.Context) error) error {
	return c.process.awaitReady(ctx, limit, ready)
}

// PID is the number of the child's process, also after its end.
func (c *Child) PID() int { return c.process.cmd.Process.Pid }

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.process.done }

// Failure says how a child ended that should be running, with the end of its log; nil while it runs.
func (c *Child) Failure() error {
	select {
	case <-c.process.done:
		return c.process.failure(fmt.Errorf("ended: %v", c.process.cmd.ProcessState))
	default:
		return nil
	}
}

// Killed says that a signal ended the child.
func (c *Child) Killed() bool {
	select {
	case <-c.process.done:
		status, is := c.process.cmd.ProcessState.Sys().(syscall.WaitStatus)
		return is && status.Signaled()
	default:
		return false
	}
}

// State says how the child ended, such as "signal: killed"; "running" where it has not.
func (c *Child) State() string {
	select {
	case <-c.process.done:
		return c.process.cmd.ProcessState.String()
	default:
		return "running"
	}
}

// Kill ends the child and everything that it started at once, as a crash does, and waits until it is gone. A child that is
// gone already is fine.
func (c *Child) Kill() {
	select {
	case <-c.process.done:
		return
	default:
	}
	// An error says that it is gone already.
	_ = syscall.Kill(-c.process.cmd.Process.Pid, syscall.SIGKILL)
	<-c.process.done
}

// Stop asks the child to end and kills it when it has not within grace. A child that is gone already is fine.
func (c *Child) Stop(grace time.Duration) {
	// An error says that it is gone already.
	_ = c.process.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.process.done:
	case <-time.After(grace):
		c.process.kill()
	}
}
