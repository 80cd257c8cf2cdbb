// SPDX-License-Identifier: Apache-2.0

// Package informer keeps an index of the fleet up to date from the caches of a process, and tells others of each change. There
// is one in a process: admission asks its index on every replica, and on the leader the scheduler binds by the same one.
package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies/index"
)

// Informer is an index with those who follow it.
type Informer struct {
	fleet  *index.Index
	synced []func() bool

	// mu orders changes: a follower sees each once, and none between what it is told at first and the next.
	mu        sync.Mutex
	followers []func(index.Change)
}

// New makes a feed of an index that is filled by other means; it counts as whole.
func New(fleet *index.Index) *Informer { return &Informer{fleet: fleet} }

// Setup makes a feed of an empty index, which the caches fill as soon as they start.
func Setup(ctx context.Context, caches cache.Cache) (*Informer, error) {
	f := New(index.New())
	for _, kind := range []struct {
		object   client.Object
		saw, had func(any)
	}{
		{&v1alpha1.Server{}, f.sawServer, f.lostServer},
		{&policyv1alpha1.ServerInventory{}, f.sawInventory, f.lostInventory},
	} {
		informer, err := caches.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("the index of the fleet cannot follow %T: %w", kind.object, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: kind.saw, UpdateFunc: func(_, o any) { kind.saw(o) }, DeleteFunc: kind.had,
		})
		if err != nil {
			return nil, fmt.Errorf("the index of the fleet cannot follow %T: %w", kind.object, err)
		}
		f.synced = append(f.synced, registration.HasSynced)
	}
	return f, nil
}

// Index is the fleet as it is known.
func (f *Informer) Index() *index.Index { return f.fleet }

// HasSynced says whether the index holds all that the caches held when they were first filled. Before that nothing can be
// said of what is not there. A nil Informer knows nothing.
func (f *Informer) HasSynced() bool {
	if f == nil {
		return false
	}
	for _, synced := range f.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// WaitForSync returns once HasSynced, or when the context ends, with an error then.
func (f *Informer) WaitForSync(ctx context.Context) error {
	var synced []toolscache.InformerSynced
	for _, one := range f.synced {
		synced = append(synced, one)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.Join(errors.New("the index of the fleet was not filled"), ctx.Err())
	}
	return nil
}

// Follow tells of every server that is known, and from then on of every change, which may be empty. The calls may come from
// several goroutines, one at a time; they must not block.
func (f *Informer) Follow(tell func(index.Change)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.fleet.Matching(index.Everything) {
		tell(index.Change{After: e})
	}
	f.followers = append(f.followers, tell)
}

// changed takes something in, and tells of it.
func (f *Informer) changed(take func() index.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change := take()
	for _, tell := range f.followers {
		tell(change)
	}
}

func (f *Informer) sawServer(o any) {
	if s, ok := o.(*v1alpha1.Server); ok {
		f.changed(func() index.Change { return f.fleet.Saw(s) })
	}
}

func (f *Informer) lostServer(o any) {
	if s, ok := last(o).(*v1alpha1.Server); ok {
		f.changed(func() index.Change { return f.fleet.Gone(s.Name) })
	}
}

func (f *Informer) sawInventory(o any) {
	if inv, ok := o.(*policyv1alpha1.ServerInventory); ok {
		f.changed(func() index.Change { return f.fleet.SawInventory(inv) })
	}
}

func (f *Informer) lostInventory(o any) {
	if inv, ok := last(o).(*policyv1alpha1.ServerInventory); ok {
		f.changed(func() index.Change { return f.fleet.ForgetInventory(inv.Spec.SystemUUID) })
	}
}

// last is an object as it was known last; a watch that was interrupted may not tell how it went.
func last(o any) any {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return o
}
