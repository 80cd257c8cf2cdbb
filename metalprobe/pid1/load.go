// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	// moduleSource names problems with kernel modules in a report.
	moduleSource = "module"
	// maxModuleProblems leaves room for problems of collectors in a report, which has 64 in all.
	maxModuleProblems = 32
	// modulePatience is how long other modules wait for one that is being loaded: an adapter may look for its disks for minutes.
	modulePatience = 20 * time.Second
)

// errAbsent means that a module finds nothing here to serve, which is no problem.
var errAbsent = errors.New("the machine has no device for it")

// loader loads each module once, one after the other.
type loader struct {
	modules *modules
	// insert gives a module to the kernel. It may block for as long as the module's driver looks for devices.
	insert func(file string) error
	// patience is how long to wait for a module before the next one is tried.
	patience time.Duration

	mu      sync.Mutex // one module at a time
	state   sync.Mutex // guards what follows
	began   map[string]chan struct{}
	outcome map[string]error
}

func newLoader(m *modules, insert func(file string) error) *loader {
	return &loader{modules: m, insert: insert, patience: modulePatience, began: map[string]chan struct{}{}, outcome: map[string]error{}}
}

// load loads what serves an alias, or the module of that name, with all that it needs. It returns how many modules were new.
func (l *loader) load(ctx context.Context, alias string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := 0
	for _, name := range l.modules.resolve(alias) {
		for _, s := range l.modules.order(name) {
			if ctx.Err() != nil {
				return fresh
			}
			if l.one(ctx, s) {
				fresh++
			}
		}
	}
	return fresh
}

// one loads one module, unless that was tried before.
func (l *loader) one(ctx context.Context, s step) bool {
	done, fresh := l.begin(s.name)
	if fresh {
		go func() {
			defer close(done)
			err := l.insertNamed(s)
			l.state.Lock()
			defer l.state.Unlock()
			l.outcome[s.name] = err
		}()
	}
	patience := time.NewTimer(l.patience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	case <-ctx.Done():
	}
	return fresh
}

func (l *loader) begin(name string) (done chan struct{}, fresh bool) {
	l.state.Lock()
	defer l.state.Unlock()
	if pending := l.began[name]; pending != nil {
		return pending, false
	}
	done = make(chan struct{})
	l.began[name] = done
	return done, true
}

func (l *loader) insertNamed(s step) error {
	file := l.modules.files[s.name]
	if file == "" {
		if s.soft {
			return nil
		}
		return errors.New("it is not in this image")
	}
	if err := l.insert(file); !s.soft && !errors.Is(err, errAbsent) {
		return err
	}
	return nil
}

// finish waits until no module is being loaded any more, or ctx ends.
func (l *loader) finish(ctx context.Context) {
	l.state.Lock()
	var pending []chan struct{}
	for _, done := range l.began {
		pending = append(pending, done)
	}
	l.state.Unlock()
	for _, done := range pending {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// count is how many modules were loaded.
func (l *loader) count() int {
	l.state.Lock()
	defer l.state.Unlock()
	n := 0
	for name := range l.began {
		if err, ended := l.outcome[name]; ended && err == nil {
			n++
		}
	}
	return n
}

// problems are the modules that could not be loaded, by name.
func (l *loader) problems() []policyv1alpha1.ProbeProblem {
	l.state.Lock()
	defer l.state.Unlock()
	var found []policyv1alpha1.ProbeProblem
	for name, done := range l.began {
		select {
		case <-done:
			if err := l.outcome[name]; err != nil {
				found = append(found, problem("%s: %v; its devices are not in this report", name, err))
			}
		default:
			found = append(found, problem("%s: still being loaded; its devices may be missing in this report", name))
		}
	}
	slices.SortFunc(found, func(a, b policyv1alpha1.ProbeProblem) int { return cmp.Compare(a.Message, b.Message) })
	if more := len(found) - maxModuleProblems; more > 0 {
		found = append(found[:maxModuleProblems], problem("%d more modules could not be loaded", more))
	}
	return found
}

func problem(format string, args ...any) policyv1alpha1.ProbeProblem {
	return policyv1alpha1.ProbeProblem{Source: moduleSource, Message: fmt.Sprintf(format, args...)}
}

// deviceAliases lists what the devices of the machine ask for, each once, in the order of their names.
func deviceAliases(sys fs.FS) []string {
	var found []string
	_ = fs.WalkDir(sys, "devices", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir // a device that went away meanwhile
		}
		if entry.IsDir() || entry.Name() != "modalias" {
			return nil
		}
		if text, err := fs.ReadFile(sys, name); err == nil {
			if word := strings.TrimSpace(string(text)); word != "" && !slices.Contains(found, word) {
				found = append(found, word)
			}
		}
		return nil
	})
	return found
}

// settling waits for devices: it loads what each new device asks for, until nothing new came for some time.
type settling struct {
	loader *loader
	// aliases list what the devices that are there ask for.
	aliases func() []string
	// events are what the kernel says of devices that come.
	events <-chan uevent
	// quiet is how long nothing new must have come, and limit how long to wait at most.
	quiet, limit time.Duration
}

// settle loads modules for the devices that are there, and for those that come. It is false where devices still came at the limit.
func (s *settling) settle(ctx context.Context) (settled bool) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	s.loadAll(ctx)
	quiet := time.NewTimer(s.quiet)
	defer quiet.Stop()
	for {
		select {
		case event := <-s.events:
			if event.action != "add" {
				continue
			}
			if event.modalias != "" {
				s.loader.load(ctx, event.modalias)
			}
			quiet.Reset(s.quiet)
		case <-quiet.C:
			// The kernel may have dropped messages, so that the devices are read again.
			if s.loadAll(ctx) == 0 {
				s.loader.finish(ctx)
				return ctx.Err() == nil
			}
			quiet.Reset(s.quiet)
		case <-ctx.Done():
			return false
		}
	}
}

func (s *settling) loadAll(ctx context.Context) (fresh int) {
	for _, alias := range s.aliases() {
		fresh += s.loader.load(ctx, alias)
	}
	return fresh
}

// follow loads modules for devices that come later, until ctx ends.
func (s *settling) follow(ctx context.Context) {
	for {
		select {
		case event := <-s.events:
			if event.action == "add" && event.modalias != "" {
				s.loader.load(ctx, event.modalias)
			}
		case <-ctx.Done():
			return
		}
	}
}
