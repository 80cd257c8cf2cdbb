// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// reconciled lets the controller look once, at a fleet of which it knows these servers.
func reconciled(t *testing.T, control *policyv1alpha1.FleetControl, complete bool, servers ...*v1alpha1.Server) (*policyv1alpha1.FleetControl, reconcile.Result) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	control.Name = policyv1alpha1.FleetControlName
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(control).WithStatusSubresource(control).Build()
	g := newGate(t, nil, servers...)
	g.Client, g.Reader, g.complete = api, api, func() bool { return complete }
	c := &controller{gate: g, client: api, recorder: events.NewFakeRecorder(10)}
	result, err := c.Reconcile(t.Context(), reconcile.Request{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := g.Control(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return after, result
}

func TestTheBreakerJudgesNoFleetOfWhichItKnowsAPart(t *testing.T) {
	failed := newServer("a", "z", entered(v1alpha1.StateError, time.Minute))
	spec := policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 10, MinServers: ptr.To[int32](1)}}
	for name, c := range map[string]struct {
		complete, trips bool
	}{
		"it waits while it starts":    {false, false},
		"it trips once it knows them": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			after, result := reconciled(t, &policyv1alpha1.FleetControl{Spec: spec}, c.complete, failed)
			if tripped := after.Status.Trip != nil; tripped != c.trips || (!c.complete && result.RequeueAfter == 0) {
				t.Errorf("tripped %v, looks again in %s", tripped, result.RequeueAfter)
			}
		})
	}
}

func TestATripEndsWithItsBreaker(t *testing.T) {
	control := &policyv1alpha1.FleetControl{}
	control.Status.Trip = &policyv1alpha1.BreakerTrip{At: metav1.NewMicroTime(noon.Add(-time.Hour)), Servers: 5, Of: 6}
	after, _ := reconciled(t, control, true)
	if after.Status.Trip != nil {
		t.Error("a breaker that is set again would hold the fleet back over what was before")
	}
}

func TestTheConditionFrozenNamesTheStrictestLevel(t *testing.T) {
	for name, c := range map[string]struct {
		freezes []policyv1alpha1.Freeze
		want    string
	}{
		"none":            {nil, "NotFrozen"},
		"one":             {[]policyv1alpha1.Freeze{{Name: "a", Level: "Destructive"}}, "Destructive"},
		"several":         {[]policyv1alpha1.Freeze{{Name: "a", Level: "All"}, {Name: "b", Level: "Destructive"}}, "All"},
		"one of no level": {[]policyv1alpha1.Freeze{{Name: "a", Level: "None"}}, "NotFrozen"},
	} {
		t.Run(name, func(t *testing.T) {
			after, _ := reconciled(t, &policyv1alpha1.FleetControl{Spec: policyv1alpha1.FleetControlSpec{Freezes: c.freezes}}, true)
			frozen := meta.FindStatusCondition(after.Status.Conditions, policyv1alpha1.ConditionFrozen)
			if frozen == nil || frozen.Reason != c.want {
				t.Errorf("%+v", frozen)
			}
		})
	}
}
