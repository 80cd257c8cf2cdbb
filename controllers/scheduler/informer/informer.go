// SPDX-License-Identifier: Apache-2.0

// Package informer keeps an index of the fleet up to date from the caches of a process, and tells others of each change. There
// is one in a process: admission asks its index on every replica, and on the leader the scheduler binds by the same one.
package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	synced []toolscache.InformerSynced

	// mu orders changes: a follower sees each once, and none between what it is told at first and the next.
	mu        sync.Mutex
	followers []func(index.Change)
}

// New makes a feed of an index that is filled by other means; it counts as whole.
func New(fleet *index.Index) *Informer { return &Informer{fleet: fleet} }

// Setup makes a feed of an empty index, which the caches fill as soon as they start.
func Setup(ctx context.Context, caches cache.Cache) (*Informer, error) {
	f := New(index.New())
	servers, err := Follow(ctx, caches, f.sawServer, f.lostServer)
	if err != nil {
		return nil, err
	}
	inventories, err := Follow(ctx, caches, f.sawInventory, f.lostInventory)
	f.synced = []toolscache.InformerSynced{servers, inventories}
	return f, err
}

// Follow calls saw for each object of a kind that the caches hold or come to hold, and for each of its changes, and lost when it is
// gone. The function that it returns says whether saw was called for all that the caches held when they were first filled.
func Follow[T any, O interface {
	*T
	client.Object
}](ctx context.Context, caches cache.Cache, saw, lost func(O)) (synced toolscache.InformerSynced, err error) {
	var kind O = new(T)
	informer, err := caches.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("the index of the fleet cannot follow %T: %w", kind, err)
	}
	registration, err := informer.AddEventHandler(handler(saw, lost))
	if err != nil {
		return nil, fmt.Errorf("the index of the fleet cannot follow %T: %w", kind, err)
	}
	return registration.HasSynced, nil
}

func handler[O any](saw, lost func(O)) toolscache.ResourceEventHandlerFuncs {
	handle := func(o any, f func(O)) {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok { // a watch that was interrupted may not tell how it went
			o = gone.Obj
		}
		if object, ok := o.(O); ok {
			f(object)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { handle(o, saw) },
		UpdateFunc: func(_, o any) { handle(o, saw) },
		DeleteFunc: func(o any) { handle(o, lost) },
	}
}

// Index is the fleet as it is known.
func (f *Informer) Index() *index.Index { return f.fleet }

// HasSynced says whether the index holds all that the caches held when they were first filled. Before that nothing can be
// said of what is not there. A nil Informer knows nothing.
func (f *Informer) HasSynced() bool {
	if f == nil {
		return false
	}
	return !slices.ContainsFunc(f.synced, func(synced toolscache.InformerSynced) bool { return !synced() })
}

// WaitForSync returns once HasSynced, or when the context ends, with an error then.
func (f *Informer) WaitForSync(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), f.synced...) {
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

func (f *Informer) sawServer(s *v1alpha1.Server) {
	f.changed(func() index.Change { return f.fleet.Saw(s) })
}

func (f *Informer) lostServer(s *v1alpha1.Server) {
	f.changed(func() index.Change { return f.fleet.Gone(s.Name) })
}

func (f *Informer) sawInventory(i *policyv1alpha1.ServerInventory) {
	f.changed(func() index.Change { return f.fleet.SawInventory(i) })
}

func (f *Informer) lostInventory(i *policyv1alpha1.ServerInventory) {
	f.changed(func() index.Change { return f.fleet.ForgetInventory(i.Spec.SystemUUID) })
}
