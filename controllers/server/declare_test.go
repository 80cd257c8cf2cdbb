// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

func prunedStatus(s *v1alpha1.Server) { s.Status.Lifecycle = nil }

func declaredClean(s *v1alpha1.Server) {
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationDeclareClean)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationReasonAnnotation, "CHG-31")
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationByAnnotation, "jane")
}

// custodyOfA is what is kept of the machine of server a.
func (w *world) custodyOfA() policyv1alpha1.Custody {
	w.t.Helper()
	var inv policyv1alpha1.ServerInventory
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: machineUUID}, &inv); err != nil {
		w.t.Fatal(err)
	}
	if inv.Custody == nil {
		return policyv1alpha1.Custody{}
	}
	return *inv.Custody
}

func TestAServerIsDeclaredCleanOnlyWhereNoClaimIsKnownToHaveHeldIt(t *testing.T) {
	holder := &policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"}
	named := func() client.Object {
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
		c.Spec.ServerRef = &corev1.LocalObjectReference{Name: "a"}
		return c
	}
	for name, c := range map[string]struct {
		power  redfish.PowerState
		server func(*v1alpha1.Server)
		also   []client.Object
		want   forcedOutcome
	}{
		"one that lost its status": {redfish.PowerOff, prunedStatus, []client.Object{inventoryOfA()},
			forcedOutcome{"Available", v1alpha1.OperationSucceeded, []string{"ClearOnlyOnProof"}}},
		"one that was marked before": {redfish.PowerOff, prunedStatus, []client.Object{dirtyInventory(nil)},
			forcedOutcome{"Available", v1alpha1.OperationSucceeded, []string{"ClearOnlyOnProof"}}},
		"not one that runs": {redfish.PowerOn, prunedStatus, []client.Object{inventoryOfA()},
			forcedOutcome{"Observing", v1alpha1.OperationRefused, nil}},
		"not one whose last holder is known": {redfish.PowerOff, prunedStatus, []client.Object{dirtyInventory(holder)},
			forcedOutcome{"Error", v1alpha1.OperationRefused, nil}},
		"not one that a claim names": {redfish.PowerOff, prunedStatus, []client.Object{inventoryOfA(), named()},
			forcedOutcome{"Error", v1alpha1.OperationRefused, nil}},
		"not one that names a claim": {redfish.PowerOff, func(s *v1alpha1.Server) { prunedStatus(s); holdsWeb(s); s.Status.State = v1alpha1.StateError },
			[]client.Object{inventoryOfA()}, forcedOutcome{"Error", v1alpha1.OperationRefused, nil}},
		"not one that remembers its holder": {redfish.PowerOff, func(s *v1alpha1.Server) {
			holdsWeb(s)
			s.Spec.ServerClaimRef = nil
			marked("Dirty")(s)
			s.Status.State = v1alpha1.StateError
		},
			[]client.Object{inventoryOfA()}, forcedOutcome{"Error", v1alpha1.OperationRefused, nil}},
		"nor one without the mark": {redfish.PowerOff, func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateError },
			[]client.Object{inventoryOfA()}, forcedOutcome{"Error", v1alpha1.OperationRefused, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(c.power), append(c.also, serverIn(v1alpha1.StateAvailable, c.server))...)
				w.manager.run(10 * time.Minute)
				serverBecomes(declaredClean)(w)
				w.manager.run(time.Minute)
				if diff := cmp.Diff(c.want, w.forced()); diff != "" {
					t.Errorf("(-want +got)\n%s\nevents %v", diff, w.said)
				}
				dirty := slices.Contains(w.server().Status.Lifecycle.Marks, "Dirty") || slices.Contains(w.custodyOfA().Marks, "Dirty")
				if c.want.State == v1alpha1.StateAvailable {
					last := w.server().Status.Lifecycle.History[len(w.server().Status.Lifecycle.History)-1]
					if dirty || last.By != "jane" || last.Reason != "CHG-31" {
						t.Errorf("it is Dirty (%t), and the last move is by %q because of %q", dirty, last.By, last.Reason)
					}
				}
				w.machine.wants(t, "in the end")
			})
		})
	}
}

// compat is compiled once.
func compat(t *testing.T) *bundle.Bundle {
	t.Helper()
	files, err := policies.Shipped("compat-v0.7")
	if err != nil {
		t.Fatal(err)
	}
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil || b == nil {
		t.Fatal(err, found.Err())
	}
	return b
}

func TestAWaiverLeavesNoRecordThatAServerIsClean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inv := dirtyInventory(&policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"})
		inv.Wipe = &policyv1alpha1.WipeReport{State: policyv1alpha1.WipeVerified, Entry: 3}
		w := inWorld(t, newMachine(redfish.PowerOff), inv, serverIn(v1alpha1.StateReserved, marked("Dirty", "Managed"), holdsWeb, released))
		waiving := compat(t)
		w.manager.Bundles = governed{waiving}
		w.manager.run(5 * time.Minute)
		if s := w.server(); s.Status.State != v1alpha1.StateAvailable || slices.Contains(s.Status.Lifecycle.Marks, "Dirty") {
			t.Fatalf("the waiver leaves it in %s with the marks %v", s.Status.State, s.Status.Lifecycle.Marks)
		}
		if c := w.custodyOfA(); c.Clean != nil {
			t.Errorf("it is recorded as clean: %+v", c.Clean)
		}

		// The default bundle governs, and the status comes back pruned.
		statusBecomes(prunedStatus)(w)
		w.start().run(10 * time.Minute)
		if s := w.server(); s.Status.State != v1alpha1.StateError || !slices.Contains(s.Status.Lifecycle.Marks, "Dirty") {
			t.Errorf("it is %s with the marks %v", s.Status.State, s.Status.Lifecycle.Marks)
		}
	})
}

func TestAServerThatIsInspectedFirstIsRecordedAsNeverBooted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inspected := func(s *v1alpha1.Server) {
			s.Status.Lifecycle.Entry, s.Status.Lifecycle.History = 3, []v1alpha1.LifecycleMove{
				{To: "Initial", Rule: "Started", Entry: 1}, {From: "Initial", To: "Discovery", Rule: "ProbeDue", Entry: 2},
				{From: "Discovery", To: "Available", Rule: "ProbeReported", Entry: 3}}
		}
		w := inWorld(t, newMachine(redfish.PowerOff), inventoryOfA(), serverIn(v1alpha1.StateAvailable, inspected))
		w.manager.run(time.Minute)
		clean := w.custodyOfA().Clean
		if clean == nil || clean.Cause != policyv1alpha1.CleanNeverBooted || clean.ServerUID != "uid-a" {
			t.Fatalf("its record is %+v", clean)
		}
		w.manager.run(time.Hour)
		if again := w.custodyOfA().Clean; !again.Since.Equal(&clean.Since) {
			t.Errorf("the record is written again: %v, %v", clean.Since, again.Since)
		}
	})
}

// ahead reads a Server that the cache does not show yet.
type ahead struct{ client.Reader }

func (r ahead) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, o, opts...)
	if _, server := o.(*v1alpha1.Server); server && err == nil {
		o.SetResourceVersion("999999")
	}
	return err
}

func TestNothingIsMadeOfAPrunedServerThatTheCacheShowsAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), inventoryOfA(), serverIn(v1alpha1.StateAvailable, prunedStatus))
		w.manager.Reader = ahead{w.api}
		w.manager.run(time.Minute)
		if l := w.server().Status.Lifecycle; l != nil || len(w.custodyOfA().Marks) > 0 {
			t.Fatalf("its lifecycle is %+v, and its custody %+v", l, w.custodyOfA())
		}
		w.manager.Reader = w.api
		w.manager.run(10 * time.Minute)
		if s := w.server(); s.Status.State != v1alpha1.StateError {
			t.Errorf("it is %s", s.Status.State)
		}
	})
}
