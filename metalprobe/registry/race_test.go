// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

func emptyInventory() *policyv1alpha1.ServerInventory {
	return &policyv1alpha1.ServerInventory{
		ObjectMeta: metav1.ObjectMeta{Name: uuid}, Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: uuid},
	}
}

// interfere lets somebody else write once, between the registry's read and its write.
func (f *fleet) interfere(write func(c client.Client) error) {
	done := false
	once := func(c client.Client) error {
		if done {
			return nil
		}
		done = true
		return write(c)
	}
	f.registry.options.Writer = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if err := once(c); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := once(c); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			if err := once(c); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	})
}

func TestAMarkThatIsWrittenMeanwhileIsNotLost(t *testing.T) {
	dirty := &policyv1alpha1.Custody{Marks: []string{"Dirty"}}
	for name, c := range map[string]struct {
		before []client.Object
		write  func(t *testing.T, c client.Client) error
	}{
		"in an inventory that exists": {[]client.Object{emptyInventory()}, func(t *testing.T, c client.Client) error {
			t.Helper()
			stored, err := inventory(t.Context(), c, uuid)
			if err != nil {
				return err
			}
			stored.Custody = dirty
			return c.Update(t.Context(), stored)
		}},
		"in an inventory that appears": {nil, func(t *testing.T, c client.Client) error {
			t.Helper()
			fresh := emptyInventory()
			fresh.Custody = dirty
			return c.Create(t.Context(), fresh)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, nil, c.before...)
			f.interfere(func(k client.Client) error { return c.write(t, k) })
			if got := f.do("POST", "/register", "mine", report(uuid, least)); got.Code != http.StatusCreated {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			if got := f.inventory(uuid); got.Report == nil || got.Custody == nil || len(got.Custody.Marks) != 1 {
				t.Errorf("inventory %+v", got)
			}
		})
	}
}

func TestAnOutcomeThatArrivesMeanwhileStays(t *testing.T) {
	f := newFleet(t, asWipe, emptyInventory())
	f.interfere(func(c client.Client) error {
		stored, err := inventory(t.Context(), c, uuid)
		if err != nil {
			return err
		}
		stored.Wipe = &policyv1alpha1.WipeReport{Entry: 7, State: policyv1alpha1.WipeVerified}
		return c.Update(t.Context(), stored)
	})
	if got := f.do("POST", "/wipe", "mine", running); got.Code != http.StatusConflict {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
	if got := f.inventory(uuid).Wipe.State; got != policyv1alpha1.WipeVerified {
		t.Errorf("the wipe is %s", got)
	}
}

func TestAConditionThatIsSetMeanwhileIsNotLost(t *testing.T) {
	key := client.ObjectKey{Namespace: "metalaw-system", Name: "srv"}
	f := newFleet(t, nil)
	f.interfere(func(c client.Client) error {
		var config metalv1alpha1.ServerBootConfiguration
		if err := c.Get(t.Context(), key, &config); err != nil {
			return err
		}
		meta.SetStatusCondition(&config.Status.Conditions, metav1.Condition{Type: "ImageValidation", Status: "True", Reason: "Valid"})
		return c.Status().Update(t.Context(), &config)
	})
	if got := f.do("POST", "/bootstate", "mine", `{"systemUUID":"`+uuid+`","booted":true}`); got.Code != http.StatusOK {
		t.Fatalf("got %d %s", got.Code, got.Body)
	}
	var config metalv1alpha1.ServerBootConfiguration
	if err := f.client.Get(t.Context(), key, &config); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ImageValidation", "IgnitionDataFetched", "BootStateReceived"} {
		if meta.FindStatusCondition(config.Status.Conditions, want) == nil {
			t.Errorf("condition %s is missing: %+v", want, config.Status.Conditions)
		}
	}
}
