// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/test/env"
)

// stopGrace is the time a child has to end by itself: the manager gives its sessions back to the BMCs.
const stopGrace = 10 * time.Second

// world is everything that runs for the demo.
type world struct {
	options options
	view    view
	// root is the repository, dir a folder of the demo's own.
	root, dir string
	keepLogs  bool
	log       *os.File

	// life is the context of what runs in this process; end ends it.
	life context.Context
	end  context.CancelFunc

	plane    *env.Env
	client   client.Client
	warnings *warnings
	watch    *watch
	mount    mount
	machines machines
	ports    ports
	trouble  chan error
	// announcer speaks beside the story.
	announcer announcer

	// running guards children, of which none is added once life has ended.
	running  sync.Mutex
	children []*env.Child
	// manager is the process that runs the manager now.
	manager atomic.Pointer[env.Child]

	endpointsFile string
	providerURL   string
	// bootsBefore counts, by claim, the boots of its machine when it was last seen off.
	bootsBefore map[string]int
	// virtual is what there is of virtual machines; nil where servers are emulated.
	virtual *virtual
}

func newWorld(o options) (*world, error) {
	root, err := env.RepoRoot()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "metalaw-demo-")
	if err != nil {
		return nil, err
	}
	w := &world{options: o, root: root, dir: dir, trouble: make(chan error, 1), warnings: &warnings{}, bootsBefore: map[string]int{}}
	w.endpointsFile = filepath.Join(dir, "endpoints.yaml")
	w.mount.dir = filepath.Join(dir, "certs")
	if err := os.MkdirAll(w.mount.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.logDir(), 0o755); err != nil {
		return nil, err
	}
	if w.log, err = os.Create(filepath.Join(w.logDir(), "demo.log")); err != nil {
		return nil, err
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(w.log)))
	w.life, w.end = context.WithCancel(context.Background())
	return w, nil
}

// close ends everything, also after a failure, and returns that failure with what went wrong at the end.
func (w *world) close(failure error) error {
	w.running.Lock()
	w.end()
	children := slices.Clone(w.children)
	w.running.Unlock()
	for _, child := range children {
		child.Stop(stopGrace)
	}
	var errs []error
	if w.plane != nil {
		errs = append(errs, w.plane.Stop())
	}
	errs = append(errs, w.log.Close(), w.remove())
	return errors.Join(append([]error{failure}, errs...)...)
}

// remove deletes what the demo wrote, all but the logs where those are still wanted.
func (w *world) remove() error {
	if !w.keepLogs && !w.options.keep {
		return os.RemoveAll(w.dir)
	}
	var errs []error
	for _, folder := range []string{w.dir, w.planeDir()} {
		entries, err := os.ReadDir(folder)
		errs = append(errs, err)
		for _, entry := range entries {
			if path := filepath.Join(folder, entry.Name()); path != w.planeDir() && path != w.logDir() {
				errs = append(errs, os.RemoveAll(path))
			}
		}
	}
	return errors.Join(errs...)
}

// planeDir is where the control plane keeps its data.
func (w *world) planeDir() string { return filepath.Join(w.dir, "control-plane") }

// logDir holds one file for each program.
func (w *world) logDir() string { return filepath.Join(w.planeDir(), "logs") }

func (w *world) kubeconfig() string {
	if w.plane == nil {
		return ""
	}
	return w.plane.Kubeconfig
}

// kubectl is a command to type, from the repository's folder.
func (w *world) kubectl(args string) string {
	path := w.plane.Kubectl()
	if inside, err := filepath.Rel(w.root, path); err == nil && !strings.HasPrefix(inside, "..") {
		path = inside
	}
	return path + " " + args
}

// connect makes the demo's own connection once the control plane runs.
func (w *world) connect(ctx context.Context) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config := rest.CopyConfig(w.plane.Config)
	config.WarningHandlerWithContext = w.warnings
	var err error
	if w.watch, err = newWatch(config, scheme); err != nil {
		return err
	}
	w.watch.onSecret = func(secret *corev1.Secret) {
		if err := w.mount.show(secret); err != nil {
			w.report(err)
		}
	}
	w.watch.onServer = w.serverChanged
	if err := w.watch.run(w.life); err != nil {
		return err
	}
	w.client, err = client.New(config, client.Options{Scheme: scheme})
	return errors.Join(err, ctx.Err())
}

// launch runs one of our programs beside the control plane.
func (w *world) launch(name string, args ...string) (*env.Child, error) {
	w.running.Lock()
	defer w.running.Unlock()
	if err := w.life.Err(); err != nil {
		return nil, err
	}
	child, err := w.plane.StartChild(name, filepath.Join(w.root, "bin", name), args...)
	if err != nil {
		return nil, fmt.Errorf("%w: run `make build`", err)
	}
	w.children = append(w.children, child)
	return child, nil
}

// start runs one of our programs, whose end is the end of the demo.
func (w *world) start(name string, args ...string) (*env.Child, error) {
	child, err := w.launch(name, args...)
	if err != nil {
		return nil, err
	}
	go func() {
		<-child.Done()
		if w.life.Err() == nil {
			w.report(child.Failure())
		}
	}()
	return child, nil
}

// report ends the story with an error that no step asked for; the first one counts.
func (w *world) report(err error) {
	select {
	case w.trouble <- err:
	default:
	}
}

// broken gives an error when a program ended that should run.
func (w *world) broken() <-chan error { return w.trouble }

// changes is closed at the next change of an object; never before the control plane runs.
func (w *world) changes() <-chan struct{} {
	if w.watch == nil {
		return nil
	}
	return w.watch.next()
}

// stayUp waits for Ctrl-C, which is a good end, or for trouble.
func (w *world) stayUp(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.trouble:
		w.keepLogs = true
		return fmt.Errorf("demo: %w\n  logs: %s", err, w.logDir())
	}
}
