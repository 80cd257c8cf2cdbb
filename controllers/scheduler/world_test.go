// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// world is an API server, a watch that lags behind it, and a scheduler.
type world struct {
	t   fataler
	api client.WithWatch
	s   *Scheduler
	// events are what the watch has still to deliver, in order.
	events []client.Object
	gone   map[types.UID]bool
	// before runs ahead of a write to a server or a claim, and may refuse it; after runs behind one, and may lose its answer.
	before, after func(client.Object) error
	// locked are servers that somebody lets nobody have.
	locked map[string]bool
	now    time.Time
	policy solve.Policy
	quota  bundle.Quota
	writes int
	mu     sync.Mutex // over writes, events and mistakes, where workers run side by side
	// gate, where there is one, stops every worker ahead of every write; without one, a worker is done before the next begins.
	gate *gate
	// mistakes are what must never happen and did, told by the next check: a worker cannot end a test.
	mistakes []string
	// named is the server that a claim was ever seen to name.
	named map[types.UID]string
	// gangs are those that the scheduler knew each claim to be of since the pass under way began; nil stands for none.
	gangs map[types.UID][]*placement.Gang
	// commits are the gangs of which the scheduler knew since then that a member names its server; that one may be gone by now.
	commits map[string]bool
	// met is what happened that a model of gangs is about.
	met struct{ bound, parted, undone bool }
}

type fataler interface {
	Fatalf(format string, args ...any)
	Helper()
}

func newWorld(t fataler) *world {
	w := &world{t: t, now: epoch, policy: byName{}, locked: map[string]bool{}, gone: map[types.UID]bool{}, named: map[types.UID]string{}}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatalf("%v", err)
	}
	base := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Server{}, &v1alpha1.ServerClaim{}).Build()
	w.api = interceptor.NewClient(base, interceptor.Funcs{Patch: w.patch})
	w.restart()
	return w
}

// restart is a new leader: it knows what the API server has, and nothing of what was under way.
func (w *world) restart() {
	w.s = New(w.api, w.api, Options{Now: func() time.Time { return w.now }})
	w.s.binder.launch, w.s.binder.fork = func(work func()) { work() }, func(_ int, work func()) { work() }
	if w.gate != nil {
		w.s.binder.launch, w.s.binder.await, w.s.binder.fork = w.gate.launch, w.gate.await, w.gate.fork
		w.s.binder.writing = make(chan struct{}, 1000) // the gate holds the writers, and cannot see who waits for room
	}
	w.s.claims = func() bundle.Claims { return bundle.Claims{Priority: bundle.Priority{Max: 1000}, Quota: w.quota} }
	w.s.rules = func(engine.Revision) policies.Rules { return nil }
	w.s.policy = func() (solve.Policy, engine.Revision) { return w.policy, engine.Revision{Name: "test"} }
	w.events = nil
	for _, s := range w.servers() {
		w.s.serverChanged(w.s.fleet.Saw(s))
	}
	for _, c := range w.claims() {
		w.s.claimChanged(c)
	}
}

// checkReservation tells if a server was given away that could not be, or taken from somebody.
func (w *world) checkReservation(before, after *v1alpha1.Server) {
	was, is := before.Spec.ServerClaimRef, after.Spec.ServerClaimRef
	switch {
	case was == nil && is != nil:
		c := &v1alpha1.ServerClaim{}
		_ = w.api.Get(context.Background(), types.NamespacedName{Namespace: is.Namespace, Name: is.Name}, c) // one that is gone put up with nothing
		spec, _ := policies.ClaimSpecOf(c)
		asked := selection.ClaimSpec{Tolerations: spec.Tolerations} // what else it asks for may have changed meanwhile
		if ok, code, _ := selection.Eligible(asked, policies.ServerStateOf(before)); !ok {
			w.mistake("server %s was reserved for claim %s though %s", before.Name, is.Name, code)
		}
	case was != nil && is == nil:
		w.checkCommit(before)
		c := &v1alpha1.ServerClaim{}
		err := w.api.Get(context.Background(), types.NamespacedName{Namespace: was.Namespace, Name: was.Name}, c)
		if err == nil && policies.Bound(before, c) {
			w.mistake("server %s was taken from claim %s, which has it", before.Name, c.Name)
		}
		if err == nil && holds(c, before) && policies.GangOf(c) != nil {
			w.met.undone = true
		}
		if policies.ServerStateOf(before).Dirty {
			w.mistake("server %s lost its claim though it was booted", before.Name)
		}
		if before.Status.State != v1alpha1.StateAvailable && (err != nil || !namesAnother(c, before)) {
			w.mistake("server %s lost its claim in state %s", before.Name, before.Status.State)
		}
	case was != nil && *was != *is:
		w.mistake("server %s went from %v to %v", before.Name, was, is)
	}
}

func (w *world) mistake(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mistakes = append(w.mistakes, fmt.Sprintf(format, args...))
}

// shown puts a version on the watch.
func (w *world) shown(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if copied, ok := o.DeepCopyObject().(client.Object); ok {
		w.events = append(w.events, copied)
	}
}

// deliver lets the watch show the next n versions.
func (w *world) deliver(n int) {
	for ; n > 0 && len(w.events) > 0; n-- {
		switch o := w.events[0].(type) {
		case *v1alpha1.Server:
			w.s.serverChanged(w.s.fleet.Saw(o))
		case *v1alpha1.ServerClaim:
			if !o.DeletionTimestamp.IsZero() {
				w.s.claimGone(o)
			} else {
				w.s.claimChanged(o)
			}
		}
		w.events = w.events[1:]
	}
	w.noteGangs()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
}

func (w *world) addServer(s *v1alpha1.Server) {
	s.ResourceVersion = ""
	w.must(w.api.Create(context.Background(), s))
	w.shown(s)
}

func (w *world) addClaim(c *v1alpha1.ServerClaim) {
	c.ResourceVersion = ""
	w.must(w.api.Create(context.Background(), c))
	w.shown(c)
}

// endClaim is a claim that goes without its finalizer having run.
func (w *world) endClaim(c *v1alpha1.ServerClaim) {
	c.Finalizers = nil
	w.must(w.api.Update(context.Background(), c))
	w.must(w.api.Delete(context.Background(), c))
	c.DeletionTimestamp = &c.CreationTimestamp
	w.shown(c)
}

func (w *world) server(name string) *v1alpha1.Server {
	s := &v1alpha1.Server{}
	w.must(w.api.Get(context.Background(), types.NamespacedName{Name: name}, s))
	return s
}

func (w *world) servers() []*v1alpha1.Server {
	var list v1alpha1.ServerList
	w.must(w.api.List(context.Background(), &list))
	all := make([]*v1alpha1.Server, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all
}

func (w *world) claims() []*v1alpha1.ServerClaim {
	var list v1alpha1.ServerClaimList
	w.must(w.api.List(context.Background(), &list))
	all := make([]*v1alpha1.ServerClaim, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all
}

func (w *world) changeServer(s *v1alpha1.Server, changes ...func(*v1alpha1.Server)) {
	for _, change := range changes {
		change(s)
	}
	status := s.Status
	w.must(w.api.Update(context.Background(), s))
	s.Status = status
	w.must(w.api.Status().Update(context.Background(), s))
	w.shown(s)
}

func (w *world) pass() error {
	w.gangs, w.commits = map[types.UID][]*placement.Gang{}, map[string]bool{}
	w.noteGangs()
	_, err := w.s.Reconcile(context.Background(), pass{})
	return err
}

// tick is one pass, after which the clock is where the pass wants to be called again. It says how long that took.
func (w *world) tick() time.Duration {
	w.t.Helper()
	result, err := w.s.Reconcile(context.Background(), pass{})
	w.must(err)
	w.now = w.now.Add(result.RequeueAfter)
	return result.RequeueAfter
}

// check is what must hold after every step.
func (w *world) check() {
	w.t.Helper()
	for _, mistake := range w.mistakes {
		w.t.Fatalf("%s", mistake)
	}
	owner := map[string]string{}
	for _, c := range w.claims() {
		server := ""
		if c.Spec.ServerRef != nil {
			server = c.Spec.ServerRef.Name
		}
		if was := w.named[c.UID]; was != "" && was != server {
			w.t.Fatalf("claim %s named %s, and now %q", c.Name, was, server)
		}
		w.named[c.UID] = server
		had := ""
		for _, s := range w.servers() {
			if !policies.Bound(s, c) {
				continue
			}
			if other := owner[s.Name]; other != "" {
				w.t.Fatalf("server %s is bound to %s and %s", s.Name, other, c.Name)
			}
			if had != "" {
				w.t.Fatalf("claim %s is bound to %s and %s", c.Name, had, s.Name)
			}
			owner[s.Name], had = c.Name, s.Name
		}
	}
}

// settle lets everything come to rest without faults.
func (w *world) settle() {
	w.before, w.after = nil, nil
	if w.gate != nil {
		w.gate.fault, w.gate.meanwhile = func(client.Object) fault { return fault{} }, func() {}
	}
	rounds := 6
	for range rounds {
		w.now = w.now.Add(time.Minute)
		for range 5 { // what one pass gives back another gives to those that come after
			w.deliver(len(w.events))
			w.must(w.pass())
		}
	}
}

// checkMistakes is what must hold of claims that name a server while another one is written for them.
func (w *world) checkMistakes() {
	w.t.Helper()
	for _, c := range w.claims() {
		for _, s := range w.servers() {
			if s.Spec.ServerClaimRef != nil && namesAnother(c, s) && !policies.ServerStateOf(s).Dirty {
				w.t.Fatalf("server %s stays with claim %s, which has another", s.Name, c.Name)
			}
		}
	}
}

// checkRest is what must hold once everything has come to rest.
func (w *world) checkRest() {
	w.t.Helper()
	free, waiting := 0, 0
	written := map[string]int{}
	for _, s := range w.servers() {
		if ok, _, _ := selection.Eligible(selection.ClaimSpec{}, policies.ServerStateOf(s)); ok {
			free++
		}
		if uid := s.Annotations[v1alpha1.ClaimUIDAnnotation]; s.Spec.ServerClaimRef != nil && s.Status.State == v1alpha1.StateAvailable {
			written[uid]++
		}
	}
	for _, c := range w.claims() {
		if c.Spec.ServerRef == nil {
			waiting++
		}

		if written[string(c.UID)] > 1 {
			w.t.Fatalf("claim %s is written on %d servers", c.Name, written[string(c.UID)])
		}
		delete(written, string(c.UID))
	}
	if free > 0 && waiting > 0 {
		w.t.Fatalf("%d claims wait while %d servers are free", waiting, free)
	}
	if len(written) > 0 {
		w.t.Fatalf("servers stay written for claims that are gone: %v", written)
	}
}
