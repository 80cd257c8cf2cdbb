// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/server/call"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// serverUnreadable has every uncached read of a Server fail.
func serverUnreadable(w *world) {
	w.manager.Reader = interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*v1alpha1.Server); is {
				return errDown
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// emulated is a BMC that is off, and a client of it.
func emulated(t *testing.T) (*emulator.Machine, redfish.BMC) {
	t.Helper()
	f := emulator.New(emulator.Options{})
	m := f.Add(emulator.MachineSpec{Identity: emulator.Identity{UUID: machineUUID}})
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	pool := redfish.NewPool(redfish.PoolOptions{})
	t.Cleanup(func() { _ = pool.Close(context.Background()) })
	user, password := m.Credentials()
	return m, pool.Get("a", redfish.Endpoint{Address: m.Address(), Port: m.Port(), Scheme: "http"},
		redfish.Credentials{Username: user, Password: password})
}

func TestABMCHearsOnlyWhatStillHolds(t *testing.T) {
	for name, c := range map[string]struct {
		changes func(*world)
		sent    bool
	}{
		"as decided":                         {func(*world) {}, true},
		"the claim asks for other power now": {claimBecomes(func(c *v1alpha1.ServerClaim) { c.Spec.Power = v1alpha1.PowerOff }), false},
		"the claim has ended":                {serverBecomes(released), false},
		"another entry has begun":            {statusBecomes(func(s *v1alpha1.Server) { s.Status.Lifecycle.Entry++ }), false},
		"the server is gone":                 {serverGoes, false},
		"the server cannot be read":          {serverUnreadable, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, bmc := emulated(t)
			w := inWorld(t, newMachine(redfish.PowerOff), append(reserved(v1alpha1.PowerOn, func(s *v1alpha1.Server) {
				s.Spec.SystemURI = m.SystemURI()
			}), inventoryOfA())...)
			v := w.manager.observe(t)
			c.changes(w)
			err := v.x.guarded(call.Reset{Action: redfish.ActionOn}, fleet.PowerOn)(t.Context(), bmc)
			if (err == nil) != c.sent {
				t.Errorf("it ended with %v", err)
			}
			if got := len(m.Resets()) > 0; got != c.sent {
				t.Errorf("the BMC was asked: %t, want %t", got, c.sent)
			}
		})
	}
}

func TestAMarkThatCustodyDoesNotHaveIsNotInTheStatusEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), append(reserved(v1alpha1.PowerOn, marked()), inventoryOfA())...)
		w.manager.Client = interceptor.NewClient(w.api, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if _, is := o.(*policyv1alpha1.ServerInventory); is {
					return errDown
				}
				return c.Patch(ctx, o, p, opts...)
			},
		})
		v := w.manager.observe(t)
		if p := v.x.carryOut(t.Context(), plan.Effect(*v.seen, engine.MarkFirst("Dirty"))); !errors.Is(p.Err, errDown) {
			t.Errorf("%+v", p)
		}
		if marks := v.server.Status.Lifecycle.Marks; slices.Contains(marks, "Dirty") {
			t.Errorf("marks %v", marks)
		}
	})
}

func TestTheHolderOfAServerThatIsNoLongerAsDecidedIsKept(t *testing.T) {
	held := func(i *policyv1alpha1.ServerInventory) {
		i.Custody = &policyv1alpha1.Custody{Marks: []string{"Dirty"}, LastHolder: &policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"}}
	}
	for name, c := range map[string]struct {
		changes func(*world)
		kept    bool
	}{
		"as decided":              {func(*world) {}, false},
		"another entry has begun": {statusBecomes(func(s *v1alpha1.Server) { s.Status.Lifecycle.Entry++ }), true},
		"a claim took it": {serverBecomes(func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inventory := inventoryOfA()
				held(inventory)
				w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable), inventory)
				v := w.manager.observe(t)
				c.changes(w)
				v.x.carryOut(t.Context(), plan.Effect(*v.seen, engine.Effect{Name: policies.EffectForgetHolder}))
				if got := w.custodyOfA().LastHolder != nil; got != c.kept {
					t.Errorf("the holder is kept: %t, want %t", got, c.kept)
				}
			})
		})
	}
}
