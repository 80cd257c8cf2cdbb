// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestATripHoldsUntilItIsStoredOrAcknowledged(t *testing.T) {
	var servers []*v1alpha1.Server
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		servers = append(servers, newServer(name, "z", entered(v1alpha1.StateError, time.Minute)))
	}
	trip := metav1.NewMicroTime(noon)
	for name, c := range map[string]struct {
		changes func(*policyv1alpha1.FleetControl)
		reason  string
	}{
		"it holds after its window while nothing is stored": {func(*policyv1alpha1.FleetControl) {}, "BreakerTripped"},
		"it holds as stored": {func(c *policyv1alpha1.FleetControl) {
			c.Status.Trip = &policyv1alpha1.BreakerTrip{At: trip, Servers: 5, Of: 5}
		}, "BreakerTripped"},
		"it ends with its acknowledgement": {func(c *policyv1alpha1.FleetControl) { c.Spec.Breaker.AcknowledgedAt = &trip }, ""},
		"it ends with its breaker":         {func(c *policyv1alpha1.FleetControl) { c.Spec.Breaker = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, &policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 50}}, servers...)
			if v := permit(t, g, servers[0], Wipe); v.Reason != v1alpha1.ReasonBreakerTripped {
				t.Fatalf("%+v", v)
			}
			g.Now = func() time.Time { return noon.Add(time.Hour) }
			for range 2 {
				changeControl(t, g, c.changes)
				if v := permit(t, g, servers[0], Wipe); v.Reason != c.reason {
					t.Errorf("held back by %q: %s", v.Reason, v.Message)
				}
			}
		})
	}
}

func TestAManagerThatComesAfterTripsTheBreakerByWhatIsStored(t *testing.T) {
	// failed left Error again, and its history tells.
	failed := func(ago time.Duration) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Status.State, s.Status.Lifecycle.EnteredAt = v1alpha1.StateAvailable, metav1.NewMicroTime(noon.Add(-ago/2))
			s.Status.Lifecycle.History = []v1alpha1.LifecycleMove{{To: v1alpha1.StateError, At: metav1.NewMicroTime(noon.Add(-ago))}}
		}
	}
	for name, c := range map[string]struct {
		entered func(time.Duration) func(*v1alpha1.Server)
		later   time.Duration
		tripped bool
	}{
		"servers that are in Error still":       {func(ago time.Duration) func(*v1alpha1.Server) { return entered(v1alpha1.StateError, ago) }, 5 * time.Minute, true},
		"servers that have left it":             {failed, 5 * time.Minute, true},
		"not once the window has passed for it": {failed, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			var servers []*v1alpha1.Server
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				servers = append(servers, newServer(name, "z", c.entered(time.Minute)))
			}
			spec := &policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 50}}
			if v := permit(t, newGate(t, spec, servers...), servers[0], Wipe); v.Reason != v1alpha1.ReasonBreakerTripped {
				t.Fatalf("the first manager: %+v", v)
			}
			after := newGate(t, spec, servers...) // the trip was not stored
			after.Now = func() time.Time { return noon.Add(c.later) }
			if v := permit(t, after, servers[0], Wipe); (v.Reason == v1alpha1.ReasonBreakerTripped) != c.tripped {
				t.Errorf("the one that comes after: %+v", v)
			}
			if (after.latched != nil) != c.tripped {
				t.Errorf("it is about to store %+v", after.latched)
			}
		})
	}
}

// racks is so many servers, each the only one in its rack, that wait for a budget which allows none.
func racks(n int, change ...func(*v1alpha1.Server)) []*v1alpha1.Server {
	var all []*v1alpha1.Server
	for i := range n {
		all = append(all, newServer(fmt.Sprintf("s%03d", i), fmt.Sprintf("rack-%03d", i), append(change, func(s *v1alpha1.Server) {
			s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWithheld, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBudgetExhausted}}
		})...))
	}
	return all
}

func TestATripIsStoredHoweverManyBudgetsAreExhausted(t *testing.T) {
	control := &policyv1alpha1.FleetControl{Spec: policyv1alpha1.FleetControlSpec{
		Breaker: &policyv1alpha1.Breaker{MaxPercent: 50},
		Budgets: []policyv1alpha1.Budget{{Name: "none-of-them", Action: "PowerOn", Max: ptr.To[int32](0), Per: zone}},
	}}
	after, _ := reconciled(t, control, true, racks(201, entered(v1alpha1.StateError, time.Minute))...)
	if after.Status.Trip == nil {
		t.Error("the trip is not stored")
	}
	if n := len(after.Status.Usage); n != 200 {
		t.Errorf("%d entries", n)
	}
	for _, c := range after.Status.Conditions {
		if len(c.Message) > 512 {
			t.Errorf("%s has a message of %d bytes", c.Type, len(c.Message))
		}
	}
}

func TestEventsAboutLongReasonsAreShortEnoughForTheAPI(t *testing.T) {
	var freezes []policyv1alpha1.Freeze
	for i := range 3 {
		freezes = append(freezes, policyv1alpha1.Freeze{Name: fmt.Sprint("f", i), Level: "All", Reason: strings.Repeat("x", 1000)})
	}
	for _, event := range eventsOf(t, &policyv1alpha1.FleetControl{Spec: policyv1alpha1.FleetControlSpec{Freezes: freezes}}) {
		if len(event) > 1024+len("Warning FrozenTrue ") {
			t.Errorf("an event of %d bytes", len(event))
		}
	}
}

func TestATripIsStoredThoughTheRestOfTheStatusIsRefused(t *testing.T) {
	control := &policyv1alpha1.FleetControl{Spec: policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 50}}}
	api := checked(t, control)
	api = interceptor.NewClient(api.(client.WithWatch), interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
		o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if c, ok := o.(*policyv1alpha1.FleetControl); ok && len(c.Status.Conditions) > 0 {
			return errors.New("status.conditions: refused")
		}
		return c.SubResource(sub).Patch(ctx, o, p, opts...)
	}})
	g := newGate(t, nil, racks(9, entered(v1alpha1.StateError, time.Minute))...)
	g.Client, g.Reader, g.complete = api, api, func() bool { return true }
	if _, err := (&controller{gate: g, client: api, recorder: events.NewFakeRecorder(10)}).Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Error("the refusal is lost")
	}
	after, err := g.Control(t.Context())
	if err != nil || after.Status.Trip == nil {
		t.Errorf("the trip is not stored (%v)", err)
	}
}

func TestReleasesTripABreakerUnlessItIsToldToWatchOnlyError(t *testing.T) {
	// erasing came to Cleanup because its claim ended; erased has left it again; broken failed while it was erased.
	ended := []v1alpha1.LifecycleMove{{From: "Reserved", To: "Cleanup", Rule: "ClaimEnded", Entry: 3, At: metav1.NewMicroTime(noon.Add(-time.Minute))}}
	erasing := func(s *v1alpha1.Server) {
		entered(v1alpha1.StateCleanup, time.Minute)(s)
		s.Status.Lifecycle.Rule, s.Status.Lifecycle.History = "ClaimEnded", ended
	}
	after := func(state v1alpha1.ServerState) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			entered(state, 0)(s)
			s.Status.Lifecycle.History = ended
		}
	}
	for name, c := range map[string]struct {
		moved  func(*v1alpha1.Server)
		states []string
		want   bool
	}{
		"releases count where it names no state":            {erasing, nil, true},
		"so do those of which the wipes are done":           {after(v1alpha1.StateAvailable), nil, true},
		"releases count where it names Cleanup":             {erasing, []string{"Error", "Cleanup"}, true},
		"releases do not count where it names only Error":   {erasing, []string{"Error"}, false},
		"but wipes that fail do where it names only Error":  {after(v1alpha1.StateError), []string{"Error"}, true},
		"and those of which the wipes are done do not then": {after(v1alpha1.StateAvailable), []string{"Error"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var servers []*v1alpha1.Server
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				servers = append(servers, newServer(name, "z", c.moved))
			}
			g := newGate(t, &policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 50, States: c.states}}, servers...)
			if v := permit(t, g, servers[0], Wipe); v.Allowed == c.want {
				t.Errorf("allowed %v: %s", v.Allowed, v.Message)
			}
		})
	}
}
