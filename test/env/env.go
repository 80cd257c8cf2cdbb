// SPDX-License-Identifier: Apache-2.0

// Package env runs a real Kubernetes control plane on the loopback interface: etcd,
// kube-apiserver with RBAC, and the controllers of kube-controller-manager that an operator's
// behaviour depends on (garbage collection, namespace deletion, default service accounts, aggregated roles).
//
// It does not build on controller-runtime's envtest, because three things are needed that envtest
// cannot give: children that die with a killed parent, restarts on the same port and data, and
// these controllers.
package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

// Options says how a control plane is started. The zero value is a good one.
type Options struct {
	// Kustomize names folders that are applied before the controllers start, in order;
	// so the garbage collector knows their kinds from its first moment. See ApplyKustomize.
	Kustomize []string
	// FleetControl applies the FleetControl that the manifests ship too. It is left out by default: an emulated fleet
	// restarts and erases its machines faster than the shipped budgets and breaker allow.
	FleetControl bool
	// StartTimeout is the time given to each component to become ready. Default: one minute.
	StartTimeout time.Duration
	// APIServerArgs are appended to the flags of kube-apiserver.
	APIServerArgs []string
	// Tolerates says of a warning of the API server that it fails no apply. Default: each one does.
	Tolerates func(warning string) bool
	// Dir holds keys, data and logs. Default: a new temporary folder, removed by Stop.
	Dir string
}

// Env is a running control plane. Its methods may be called by one goroutine at a time.
type Env struct {
	// Config is the administrator's (group system:masters) connection, without client-side
	// rate limit. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the path of a file with the same rights, for kubectl.
	Kubeconfig string
	// KeepLogs makes Stop leave the folder with the logs behind.
	KeepLogs bool

	opts        Options
	dir         string
	ownsDir     bool
	bins        binaries
	pki         *pki
	apiPort     *reservedPort
	etcd        *process
	apiserver   *process
	controllers *process
}

// Start brings up a control plane and returns when the API server reports ready and the
// controllers run. After an error nothing is left running; the logs remain,
// and the error says where.
func Start(ctx context.Context, opts Options) (*Env, error) {
	if opts.StartTimeout == 0 {
		opts.StartTimeout = time.Minute
	}
	e := &Env{opts: opts}
	if err := e.start(ctx); err != nil {
		e.KeepLogs = true
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

func (e *Env) start(ctx context.Context) error {
	var err error
	if e.bins, err = findBinaries(); err != nil {
		return err
	}
	if err := e.prepare(); err != nil {
		return fmt.Errorf("prepare the control plane: %w", err)
	}
	if err := e.startEtcd(ctx); err != nil {
		return err
	}
	if err := e.startAPIServer(ctx); err != nil {
		return err
	}
	for _, dir := range e.opts.Kustomize {
		if err := e.ApplyKustomize(ctx, dir); err != nil {
			return err
		}
	}
	return e.startControllers(ctx)
}

// prepare makes the folder, the keys and the ports; nothing runs yet.
func (e *Env) prepare() error {
	e.dir = e.opts.Dir
	if e.dir == "" {
		dir, err := os.MkdirTemp("", "metalaw-env-")
		if err != nil {
			return err
		}
		e.dir, e.ownsDir = dir, true
	}
	// The kernel takes no longer name for a socket than about 104 bytes.
	if socket := e.etcdSocket(); len(socket) > 100 {
		return fmt.Errorf("the name of etcd's socket %s is too long: choose a shorter Dir, or TMPDIR", socket)
	}
	if err := os.MkdirAll(e.LogDir(), 0o755); err != nil {
		return err
	}
	var err error
	if e.pki, err = newPKI(filepath.Join(e.dir, "pki")); err != nil {
		return err
	}
	if e.apiPort, err = reservePort(); err != nil {
		return err
	}
	admin := User{Name: "admin", Groups: []string{"system:masters"}}
	if e.Config, err = e.ConfigFor(admin); err != nil {
		return err
	}
	e.Kubeconfig, err = e.KubeconfigFor(admin)
	return err
}

// LogDir is the folder with one log file for each component.
func (e *Env) LogDir() string { return filepath.Join(e.dir, "logs") }

// Stop ends every component at once and removes what Start made on disk (all but the logs when
// KeepLogs is set). Calling it again does nothing.
func (e *Env) Stop() error {
	for _, p := range []*process{e.controllers, e.apiserver, e.etcd} {
		if p != nil {
			p.kill()
		}
	}
	e.controllers, e.apiserver, e.etcd = nil, nil, nil
	e.apiPort.release()
	if !e.ownsDir || e.dir == "" {
		return nil
	}
	if e.KeepLogs {
		return os.RemoveAll(filepath.Join(e.dir, "etcd"))
	}
	return os.RemoveAll(e.dir)
}

// TB is the part of testing.TB that ForTest needs; it keeps package testing out of programs that
// use a control plane outside of tests.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// ForTest starts a control plane for one test and stops it when the test ends. When the test
// failed, the logs are kept and their place is printed.
func ForTest(ctx context.Context, tb TB, opts Options) *Env {
	tb.Helper()
	e, err := Start(ctx, opts)
	if err != nil {
		tb.Fatalf("start the control plane: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			e.KeepLogs = true
			tb.Logf("logs of the control plane: %s", e.LogDir())
		}
		if err := e.Stop(); err != nil {
			tb.Logf("stop the control plane: %v", err)
		}
	})
	return e
}
