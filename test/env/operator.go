// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// operatorStartLimit is the time that a manager has to become ready.
const operatorStartLimit = 90 * time.Second

// Operator is the built manager beside a control plane, with the shipped rights and the shipped webhooks, started again
// whenever it has ended. Its methods may be called by several goroutines.
type Operator struct {
	// Name is that of its log.
	Name string
	// Await, where it is set before Start, holds each process but the first back until it returns; Stop ends its context.
	Await func(context.Context)

	plane   *Env
	binary  string
	args    []string
	health  string
	life    context.Context
	release context.CancelFunc

	mu       sync.Mutex
	child    *Child
	ready    chan struct{} // closed once the present process is ready
	stopped  bool
	held     bool
	starts   int
	failures []error
	followed sync.WaitGroup
}

// NewOperator makes everything that a manager needs to start: ports, rights, certificates, and webhooks that point at it.
// The manifests of config/default must be applied. Further flags of `metalaw manager` are appended; dir is for its files.
func (e *Env) NewOperator(ctx context.Context, binary, dir string, flags ...string) (*Operator, error) {
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("the manager: %w: run `make build`", err)
	}
	certificate, key, authority, err := e.ServingCert("metalaw-system", "metalaw-webhook")
	if err != nil {
		return nil, err
	}
	for name, pem := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authority} {
		if err := os.WriteFile(filepath.Join(dir, name), pem, 0o600); err != nil {
			return nil, err
		}
	}
	var ports [3]int
	for i := range ports {
		if ports[i], err = FreePort(ctx); err != nil {
			return nil, err
		}
	}
	local := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
	rights, err := e.KubeconfigFor(Manager)
	if err != nil {
		return nil, err
	}
	if err := e.PointWebhooksAt(ctx, local(ports[0]), authority); err != nil {
		return nil, err
	}
	return e.OperatorWith("manager", binary, local(ports[2]), append([]string{
		"manager", "--kubeconfig=" + rights, "--namespace=metalaw-system", "--metrics-bind-address=0",
		"--webhook-host=127.0.0.1", "--webhook-port=" + strconv.Itoa(ports[0]), "--webhook-cert-dir=" + dir, "--webhook-cert-rotation=false",
		"--no-release-grace", "--registry-plaintext", "--registry-bind-address=" + local(ports[1]), "--registry-url=http://" + local(ports[1]),
		"--health-probe-bind-address=" + local(ports[2]),
	}, flags...)), nil
}

// OperatorWith is a manager for which everything is made already: a program, its arguments, and where it serves /readyz.
func (e *Env) OperatorWith(name, binary, health string, args []string) *Operator {
	o := &Operator{Name: name, plane: e, binary: binary, args: args, health: health}
	o.life, o.release = context.WithCancel(context.Background())
	return o
}

// Start runs the manager until Stop.
func (o *Operator) Start() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.launch()
}

// launch is called with the lock held.
func (o *Operator) launch() error {
	child, err := o.plane.StartChild(o.Name, o.binary, o.args...)
	if err != nil {
		return err
	}
	ready := make(chan struct{})
	o.child, o.ready = child, ready
	o.starts++
	o.followed.Go(func() { o.follow(child, ready) })
	return nil
}

// follow starts the next process when this one has ended.
func (o *Operator) follow(child *Child, ready chan struct{}) {
	if child.AwaitReady(context.Background(), operatorStartLimit, o.answers) == nil {
		close(ready)
	}
	<-child.Done()
	if o.Await != nil {
		o.Await(o.life)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped || o.held {
		return
	}
	if o.child == child { // nobody asked it to end
		o.failures = append(o.failures, child.Failure())
		o.child = nil
	}
	if err := o.launch(); err != nil {
		o.failures = append(o.failures, err)
	}
}

func (o *Operator) answers(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.health+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz: %s", response.Status)
	}
	return nil
}

// Kill ends the manager at once, as a crash does, and returns when it is gone; another one is started. False: there is
// none at this moment.
func (o *Operator) Kill() bool { return o.end((*Child).Kill) }

// Restart asks the manager to end, as an update does; another one is started. False: there is none at this moment.
func (o *Operator) Restart(grace time.Duration) bool {
	return o.end(func(c *Child) { c.Stop(grace) })
}

func (o *Operator) end(how func(*Child)) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.child == nil || o.stopped {
		return false
	}
	child := o.child
	o.child = nil
	how(child)
	return true
}

// Hold ends the manager at once, as a crash does. None runs before the function that it returns is called.
func (o *Operator) Hold() (resume func() error) {
	o.mu.Lock()
	o.held = true
	child := o.child
	o.child = nil
	o.mu.Unlock()
	if child != nil {
		child.Kill()
	}
	o.followed.Wait()
	return func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.held = false; o.stopped {
			return nil
		}
		return o.launch()
	}
}

// AwaitReady waits until a manager is ready, whichever process that is.
func (o *Operator) AwaitReady(ctx context.Context) error {
	for {
		o.mu.Lock()
		child, ready := o.child, o.ready
		o.mu.Unlock()
		var ended <-chan struct{}
		if child == nil { // the next one is about to be started
			again, cancel := context.WithTimeout(ctx, readyPoll)
			<-again.Done()
			cancel()
		} else {
			ended = child.Done()
			select {
			case <-ready:
				return nil
			case <-ended:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return errors.Join(append(o.Failures(), context.Cause(ctx))...)
		}
	}
}

// Ready says whether a manager is ready at this moment.
func (o *Operator) Ready() bool {
	o.mu.Lock()
	child, ready := o.child, o.ready
	o.mu.Unlock()
	if child == nil {
		return false
	}
	select {
	case <-ready:
		return true
	default:
		return false
	}
}

// Starts is how many processes there were.
func (o *Operator) Starts() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.starts
}

// Failures are the ends that nobody asked for.
func (o *Operator) Failures() []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]error(nil), o.failures...)
}

// Stop ends the manager for good, in order.
func (o *Operator) Stop(grace time.Duration) {
	o.mu.Lock()
	o.stopped = true
	child := o.child
	o.mu.Unlock()
	o.release()
	if child != nil {
		child.Stop(grace)
	}
	o.followed.Wait()
}
