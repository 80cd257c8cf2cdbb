// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// checked is a client of an API server with a FleetControl, which refuses a status that the schema does not take.
func checked(t *testing.T, control *policyv1alpha1.FleetControl) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	control.Name = policyv1alpha1.FleetControlName
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(control).WithStatusSubresource(control).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object,
			p client.Patch, opts ...client.SubResourcePatchOption) error {
			if c, ok := o.(*policyv1alpha1.FleetControl); ok && len(c.Status.Usage) > 200 {
				return errors.New("status.usage: Too many: must have at most 200 items")
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		}}).Build()
}

// reconciled lets the controller look once, at a fleet of which it knows these servers.
func reconciled(t *testing.T, control *policyv1alpha1.FleetControl, complete bool, servers ...*v1alpha1.Server) (*policyv1alpha1.FleetControl, reconcile.Result) {
	t.Helper()
	api := checked(t, control)
	g := newGate(t, nil, servers...)
	g.Client, g.Reader, g.complete = api, api, func() bool { return complete }
	c := &controller{gate: g, client: api, recorder: events.NewFakeRecorder(10)}
	result, err := c.Reconcile(t.Context(), reconcile.Request{})
	if err != nil {
		t.Error(err)
	}
	after, err := g.Control(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return after, result
}

// eventsOf is what the controller tells when it first looks at a FleetControl.
func eventsOf(t *testing.T, control *policyv1alpha1.FleetControl) []string {
	t.Helper()
	g, api, recorder := newGate(t, nil), checked(t, control), events.NewFakeRecorder(10)
	g.Client, g.Reader, g.complete = api, api, func() bool { return true }
	if _, err := (&controller{gate: g, client: api, recorder: recorder}).Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	var all []string
	for len(recorder.Events) > 0 {
		all = append(all, <-recorder.Events)
	}
	if len(all) == 0 {
		t.Fatal("nothing is told")
	}
	return all
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

func TestAFreezeIsAcknowledgedByTheGenerationThatEachLookSees(t *testing.T) {
	for name, c := range map[string]struct {
		complete bool
		want     int64
	}{
		"once every server is known": {true, 7},
		"not while it starts":        {false, 6},
	} {
		t.Run(name, func(t *testing.T) {
			control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			control.Status.ObservedGeneration = 6
			if after, _ := reconciled(t, control, c.complete); after.Status.ObservedGeneration != c.want {
				t.Errorf("it acknowledges generation %d, want %d", after.Status.ObservedGeneration, c.want)
			}
		})
	}
}
