// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// readyPoll is how often a starting component is asked whether it is ready.
const readyPoll = 25 * time.Millisecond

// process is a child that never outlives this program.
type process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	done    chan struct{} // closed when the child has been waited for
	err     error         // how it ended; valid once done is closed
}

// startProcess runs a program with its output appended to logDir/name.log.
func startProcess(name, logDir, path string, args ...string) (*process, error) {
	logPath := filepath.Join(logDir, name+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	// Not bound to a context: a component lives until it is stopped, not until its start is over.
	cmd := exec.CommandContext(context.Background(), path, args...)
	p := &process{name: name, logPath: logPath, cmd: cmd, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttributes()

	started := make(chan error)
	go func() {
		defer close(p.done)
		defer func() { _ = log.Close() }()
		// The kernel ends the child when the *thread* that made it ends, so this goroutine
		// keeps its thread for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// awaitReady asks until ready returns nil. It gives up when the child ends or the time is over,
// with the end of the child's log in the error.
func (p *process) awaitReady(ctx context.Context, limit time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.failure(fmt.Errorf("ended before it was ready: %w", p.err))
		case <-ctx.Done():
			return p.failure(fmt.Errorf("not ready within %s: %w", limit, errors.Join(ctx.Err(), err)))
		case <-tick.C:
		}
	}
}

func (p *process) failure(cause error) error {
	const lines = 12
	log, err := os.ReadFile(p.logPath)
	if err != nil {
		return fmt.Errorf("%s: %w (its log cannot be read: %w)", p.name, cause, err)
	}
	rows := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	rows = rows[max(0, len(rows)-lines):]
	return fmt.Errorf("%s: %w; its log %s ends with:\n%s", p.name, cause, p.logPath, bytes.Join(rows, []byte("\n")))
}

// kill ends the child at once and waits until it is gone. A child that is gone already is fine.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}
