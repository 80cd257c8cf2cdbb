// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// bindings watches who has whom, at every moment.
type bindings struct {
	mu       sync.Mutex
	claimOf  map[string]string // by server: the claim that it names
	serverOf map[string]string // by claim UID: the server that it names
	breaches []string
}

func watchBindings(ctx context.Context, running *sync.WaitGroup, config *rest.Config) *bindings {
	GinkgoHelper()
	b := &bindings{claimOf: map[string]string{}, serverOf: map[string]string{}}
	objects, err := cache.New(config, cache.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	for _, kind := range []client.Object{&v1alpha1.Server{}, &v1alpha1.ServerClaim{}} {
		informer, err := objects.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		Expect(err).NotTo(HaveOccurred())
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: b.seen, UpdateFunc: func(_, now any) { b.seen(now) }, DeleteFunc: b.gone,
		})
		Expect(err).NotTo(HaveOccurred())
	}
	running.Go(func() {
		defer GinkgoRecover()
		Expect(objects.Start(ctx)).To(Succeed())
	})
	return b
}

func (b *bindings) seen(object any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o := object.(type) {
	case *v1alpha1.Server:
		delete(b.claimOf, o.Name)
		if ref := o.Spec.ServerClaimRef; ref != nil {
			name := ref.Namespace + "/" + ref.Name
			b.conflict(b.claimOf, name, "the claim %s is on the servers %s and %s", o.Name)
			b.claimOf[o.Name] = name
		}
	case *v1alpha1.ServerClaim:
		delete(b.serverOf, string(o.UID))
		if ref := o.Spec.ServerRef; ref != nil && o.DeletionTimestamp.IsZero() {
			b.conflict(b.serverOf, ref.Name, "the server %s has the claims %s and %s", string(o.UID))
			b.serverOf[string(o.UID)] = ref.Name
		}
	}
}

// conflict is called with the lock held.
func (b *bindings) conflict(all map[string]string, wanted, format, by string) {
	for other, has := range all {
		if has == wanted && other != by {
			b.breaches = append(b.breaches, fmt.Sprintf(format, wanted, other, by))
		}
	}
}

func (b *bindings) gone(object any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = last.Obj
	}
	switch o := object.(type) {
	case *v1alpha1.Server:
		delete(b.claimOf, o.Name)
	case *v1alpha1.ServerClaim:
		delete(b.serverOf, string(o.UID))
	}
}

func (b *bindings) report() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.breaches...)
}
