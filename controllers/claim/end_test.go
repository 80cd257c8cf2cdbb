// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// ending is a claim that ends, in an API server with its server and the boot configuration of its name.
func ending(t *testing.T, change func(*facts)) (*scope, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := bound()
	change(&f)
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.server, f.boot).Build()
	return &scope{Subject: &Subject{Client: api, Live: api, Now: time.Now}, facts: f}, api
}

func TestAClaimTakesOnlyItsOwnBootConfigurationAlong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts)
		stays  bool
	}{
		"its own": {func(*facts) {}, false},
		"one that lost its owner and that its server names": {func(f *facts) { f.boot.OwnerReferences = nil }, false},
		"one that lost its owner and that was written for a claim": {func(f *facts) {
			f.boot.OwnerReferences, f.server.Spec.BootConfigurationRef = nil, nil
			f.boot.Annotations = map[string]string{v1alpha1.BootPurposeAnnotation: v1alpha1.BootPurposeClaim}
		}, false},
		"one without an owner that no server names": {func(f *facts) {
			f.boot.OwnerReferences, f.server.Spec.BootConfigurationRef = nil, nil
		}, true},
		"one of another claim of the name": {func(f *facts) { f.boot.OwnerReferences[0].UID = "uid-other" }, true},
		"one that it owns and does not control": {func(f *facts) {
			f.boot.OwnerReferences[0].Controller = ptr.To(false)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			v, api := ending(t, c.change)
			if err := v.dropBoot(t.Context(), []*v1alpha1.Server{v.facts.server}); err != nil {
				t.Fatal(err)
			}
			err := api.Get(t.Context(), client.ObjectKeyFromObject(v.facts.boot), &v1alpha1.ServerBootConfiguration{})
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == c.stays {
				t.Errorf("it stays: %t, want %t (%v)", err == nil, c.stays, err)
			}
		})
	}
}

func TestABootConfigurationIsReadPastTheCacheOnlyWhereTheCacheIsBehind(t *testing.T) {
	shows := func(change func(*v1alpha1.ServerBootConfiguration)) func(*facts) client.Reader {
		return func(f *facts) client.Reader {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			boot := f.boot.DeepCopy()
			boot.ResourceVersion = ""
			change(boot)
			return fake.NewClientBuilder().WithScheme(scheme).WithObjects(boot).Build()
		}
	}
	for name, c := range map[string]struct {
		cache func(*facts) client.Reader
		reads int
		stays bool
	}{
		"it shows what is stored": {nil, 0, false},
		"it does not show it yet": {shows(func(b *v1alpha1.ServerBootConfiguration) { b.Name = "another" }), 1, false},
		"it shows another owner's of the name": {shows(func(b *v1alpha1.ServerBootConfiguration) {
			b.OwnerReferences[0].UID = "uid-other"
		}), 1, false},
		"it shows a former version": {shows(func(b *v1alpha1.ServerBootConfiguration) { b.ResourceVersion = "7" }), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			v, api := ending(t, func(*facts) {})
			reads := 0
			live := api.(client.WithWatch)
			v.Live = interceptor.NewClient(live, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, o, opts...)
				}})
			v.Client = interceptor.NewClient(live, interceptor.Funcs{
				Get: func(ctx context.Context, client client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if c.cache != nil {
						return c.cache(&v.facts).Get(ctx, key, o, opts...)
					}
					return client.Get(ctx, key, o, opts...)
				}})
			if err := v.dropBoot(t.Context(), []*v1alpha1.Server{v.facts.server}); err != nil {
				t.Fatal(err)
			}
			err := api.Get(t.Context(), client.ObjectKeyFromObject(v.facts.boot), &v1alpha1.ServerBootConfiguration{})
			if apierrors.IsNotFound(err) == c.stays || reads != c.reads {
				t.Errorf("%d reads past the cache, want %d (%v)", reads, c.reads, err)
			}
		})
	}
}

func TestAReleaseOfAServerThatWasWrittenSinceItWasReadIsRefused(t *testing.T) {
	v, api := ending(t, func(*facts) {})
	read := func(ctx context.Context) *v1alpha1.Server {
		s := &v1alpha1.Server{}
		if err := api.Get(ctx, client.ObjectKeyFromObject(v.facts.server), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	former, now := read(t.Context()), read(t.Context())
	now.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-other" // another claim got the server meanwhile
	if err := api.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := v.release(t.Context(), former); !apierrors.IsConflict(err) {
		t.Errorf("%v, want a conflict", err)
	}
	if s := read(t.Context()); s.Annotations[v1alpha1.ReleasedClaimAnnotation] != "" {
		t.Errorf("released: %v", s.Annotations)
	}
}
