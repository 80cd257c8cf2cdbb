// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

const (
	managerNamespace = "metalaw-system"
	certificates     = "metalaw-webhook-certs"
)

// watch holds every object of the story as the API server shows it, and tells of each change.
type watch struct {
	cache.Cache
	// onSecret and onServer are told of changes, one at a time each.
	onSecret func(*corev1.Secret)
	onServer func(old, now *v1alpha1.Server)

	mu      sync.Mutex
	changed chan struct{}
}

func newWatch(config *rest.Config, scheme *runtime.Scheme) (*watch, error) {
	objects, err := cache.New(config, cache.Options{
		Scheme: scheme,
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{managerNamespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", certificates),
		}},
	})
	if err != nil {
		return nil, err
	}
	return &watch{Cache: objects, changed: make(chan struct{})}, nil
}

// run returns when everything was read once, and goes on watching until ctx ends.
func (w *watch) run(ctx context.Context) error {
	for _, kind := range []client.Object{
		&v1alpha1.Endpoint{}, &v1alpha1.BMC{}, &v1alpha1.Server{}, &v1alpha1.ServerClaim{}, &v1alpha1.ServerBootConfiguration{},
		&v1alpha1.ServerMaintenance{},
		&policyv1alpha1.ServerInventory{}, &policyv1alpha1.PolicyRevision{}, &corev1.Secret{},
	} {
		informer, err := w.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		handler := toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(now any) { w.tell(nil, now) },
			UpdateFunc: w.tell,
			DeleteFunc: func(any) { w.tell(nil, nil) },
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	go func() { _ = w.Start(ctx) }() // ends with ctx, which is no error
	if !w.WaitForCacheSync(ctx) {
		return errors.New("watch: the API server does not show what it has")
	}
	return nil
}

func (w *watch) tell(old, now any) {
	switch now := now.(type) {
	case *corev1.Secret:
		w.onSecret(now)
	case *v1alpha1.Server:
		before, _ := old.(*v1alpha1.Server)
		w.onServer(before, now)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// next is closed at the next change.
func (w *watch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}
