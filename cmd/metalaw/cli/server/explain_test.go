// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/policies"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noon.Add(-d)) }

// smallLifecycle has a rule of each kind that an explanation tells apart.
const smallLifecycle = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Initial
define:
  poweredOff: bmc.power == "Off"
  held:     server.claimRefSet
  claimed:  claim.bound
  reported: probe.entry == lifecycle.entry && probe.complete
states:
  Initial:
    means: Finding its place.
    stable: true
    exits:
    - {rule: Held, to: Busy, when: held && claimed}
    - {rule: Seen, to: Busy, when: reported && poweredOff}
    - {rule: Late, to: Busy, after: 15m}
  Busy:
    means: In use.
    stable: true
    exits:
    - {rule: Free, to: Initial, when: "!held"}
    - {rule: Never, to: Initial, when: poweredOff}
`

func aRevision(t *testing.T) *policyv1alpha1.PolicyRevision {
	t.Helper()
	files, err := policies.Shipped("default")
	if err != nil {
		t.Fatal(err)
	}
	delete(files, "scenarios.yaml")
	files["lifecycle.yaml"] = []byte(smallLifecycle)
	content, err := files.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r := &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: "small-1"}}
	r.Spec.Content, r.Spec.Digest = content, files.Digest()
	return r
}

func nodeIn(state v1alpha1.ServerState, change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"rack": "r1"}, Annotations: map[string]string{}}}
	s.Spec.SystemUUID = "rack1-slot7"
	s.Status.State = state
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Revision: "small-1", Entry: 4, EnteredAt: before(5 * time.Minute), Rule: "Free",
		Marks: []string{"Managed"}, History: []v1alpha1.LifecycleMove{
			{From: "Initial", To: "Busy", Rule: "Held", Entry: 3, At: before(time.Hour)},
			{From: "Busy", To: "Initial", Rule: "Free", Entry: 4, At: before(5 * time.Minute)}}}
	for _, c := range change {
		c(s)
	}
	return s
}

// reader reads objects, but none of the kinds that are refused.
func reader(t *testing.T, refused []string, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	get := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, given ...client.GetOption) error {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", into), "*v1alpha1.")
		for _, r := range refused {
			if r == kind {
				return apierrors.NewForbidden(schema.GroupResource{Group: "g", Resource: kind}, key.Name,
					errors.New(`User "tina" cannot get resource "`+kind+`" in API group "g" at the cluster scope`))
			}
		}
		return c.Get(ctx, key, into, given...)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Get: get}).Build()
}

func withheld(s *v1alpha1.Server) {
	s.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: "Withheld", Message: "waits", LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))},
		{Type: "Withheld", Status: "True", Reason: "Frozen", Message: `freeze "a"`, LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))},
		{Type: "Healthy", Status: "True", Reason: "OK"}}
}

func claimedBy(s *v1alpha1.Server) {
	s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
	s.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-web"
}

func busy(s *v1alpha1.Server) {
	shown := before(3 * time.Minute)
	s.Status.Operation = &v1alpha1.OperationStatus{Name: "retry", State: v1alpha1.OperationPending, StartedAt: before(2 * time.Minute), By: "bob", Reason: "DIMM replaced"}
	s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: before(4 * time.Minute), Attempts: 2, ShownAt: &shown}
	s.Status.Lifecycle.Retries = 1
	s.Status.Lifecycle.Clock = &v1alpha1.DeadlineClock{Counted: metav1.Duration{Duration: 2 * time.Minute}, AsOf: before(time.Minute), Held: true, Reason: "Frozen"}
}

func refused(s *v1alpha1.Server) {
	s.Status.PowerState = v1alpha1.PowerStateOn
	s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionForceOff, AskedAt: before(4 * time.Minute), Refusal: "not now", Refusals: 3}
}

func leaving(s *v1alpha1.Server) {
	at := metav1.NewTime(noon.Add(-2 * time.Minute))
	s.DeletionTimestamp, s.Finalizers = &at, []string{v1alpha1.FinalizerServer}
	s.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationIgnore
}

// reported is what the machine reported in the present entry.
func reported() *policyv1alpha1.ServerInventory {
	return &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: "rack1-slot7"}, Report: &policyv1alpha1.ProbeReport{Entry: 4}}
}

func theFleet() *policyv1alpha1.FleetControl {
	c := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
	rack := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"rack": name}}
	}
	ended := metav1.NewTime(noon.Add(-time.Hour))
	c.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "a", Level: "All", Reason: "switch", By: "bob", Selector: rack("r1")},
		{Name: "b", Level: "All", Selector: rack("r2")}, {Name: "c", Level: "All", Until: &ended}}
	c.Spec.Budgets = []policyv1alpha1.Budget{{Name: "inrush", Action: policyv1alpha1.ActionPowerOn, Max: new(int32(4)), Per: "rack"},
		{Name: "wipes", Action: policyv1alpha1.ActionWipe, Max: new(int32(2))}}
	c.Status.Usage = []policyv1alpha1.BudgetUsage{{Name: "inrush", Value: "r2", Used: 9}, {Name: "inrush", Value: "r1", Used: 4}}
	return c
}

func TestAServerIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		objects []client.Object
		refused []string
		want    string
	}{
		"that nothing holds": {[]client.Object{nodeIn("Initial"), aRevision(t)}, nil, `Server node-1 is Initial since 5m (Free)

It means:    Finding its place.
Until:       Late moves it to Busy at 2026-01-31T12:10:00Z, in 10m0s; 5m0s count so far
Policy:      small-1
Marks:       Managed
Entry:       4; 0 retries since the last rest

Ways out of Initial:
RULE   TO     NOW           WHEN
Held   Busy   no            held && claimed (held is false)
Seen   Busy   no            reported && poweredOff (reported is false)
Late   Busy   waits 10m0s   after 15m0s

Last moves:
WHEN      FROM      TO        RULE
5m ago    Busy      Initial   Free
60m ago   Initial   Busy      Held
`},
		"that a freeze holds": {[]client.Object{nodeIn("Initial", withheld, busy), aRevision(t), theFleet()}, nil, `Server node-1 is Initial since 5m (Free)

It means:    Finding its place.
Until:       Late moves it to Busy after 13m0s more; 2m0s count so far, and time does not count now (Frozen)
Held by:     Withheld is True since 60s (Frozen): freeze "a"
Besides:     Ready is False since 60s (Withheld): waits
Operation:   retry is Pending, asked for 2m ago by bob; DIMM replaced
Request:     On, asked of the BMC 4m ago, attempt 2; the BMC showed it 3m ago
Policy:      small-1
Marks:       Managed
Entry:       4; 1 retry since the last rest
Freeze:      freeze "a" (All) by bob: switch
Budget:      inrush allows 4 PowerOn for rack=r1; used up: 4 count
Budget:      wipes allows 2 Wipe; the manager does not say that it is used up

Ways out of Initial:
RULE   TO     NOW           WHEN
Held   Busy   no            held && claimed (held is false)
Seen   Busy   no            reported && poweredOff (reported is false)
Late   Busy   waits 13m0s   after 15m0s

Last moves:
WHEN      FROM      TO        RULE
5m ago    Busy      Initial   Free
60m ago   Initial   Busy      Held
`},
		"whose claim the reader may not see": {[]client.Object{nodeIn("Initial", claimedBy), aRevision(t)},
			[]string{"ServerClaim", "FleetControl", "ServerInventory"}, `Server node-1 is Initial since 5m (Free)

It means:    Finding its place.
Policy:      small-1
Marks:       Managed
Entry:       4; 0 retries since the last rest

Last moves:
WHEN      FROM      TO        RULE
5m ago    Busy      Initial   Free
60m ago   Initial   Busy      Held
note: you cannot see which freezes and budgets apply (forbidden: User "tina" cannot get resource "FleetControl" in API group "g" at the cluster scope; it takes the verb "get" on fleetcontrols.policy.metalaw.dev; the ClusterRole metalaw-fleet-viewer has it)
note: you cannot see the claim, so no rules can be shown (forbidden: User "tina" cannot get resource "ServerClaim" in API group "g" at the cluster scope; it takes the verb "get" on serverclaims.metal.ironcore.dev; the ClusterRole metalaw-fleet-viewer has it)
note: you cannot see what the machine reported, so no rules can be shown (forbidden: User "tina" cannot get resource "ServerInventory" in API group "g" at the cluster scope; it takes the verb "get" on serverinventories.policy.metalaw.dev; the ClusterRole metalaw-fleet-viewer has it)
`},
		"whose rules the reader may not see": {[]client.Object{nodeIn("Initial"), aRevision(t)}, []string{"PolicyRevision"}, `Server node-1 is Initial since 5m (Free)

Policy:      small-1
Marks:       Managed
Entry:       4; 0 retries since the last rest

Last moves:
WHEN      FROM      TO        RULE
5m ago    Busy      Initial   Free
60m ago   Initial   Busy      Held
note: you cannot see the rules of the revision that governs the server (forbidden: User "tina" cannot get resource "PolicyRevision" in API group "g" at the cluster scope; it takes the verb "get" on policyrevisions.policy.metalaw.dev; the ClusterRole metalaw-fleet-viewer has it)
`},
		"whose revision is gone": {[]client.Object{nodeIn("Initial")}, nil, `Server node-1 is Initial since 5m (Free)

Policy:      small-1
Marks:       Managed
Entry:       4; 0 retries since the last rest

Last moves:
WHEN      FROM      TO        RULE
5m ago    Busy      Initial   Free
60m ago   Initial   Busy      Held
note: the revision small-1, which governs the server, does not exist any more, so no rules can be shown
`},
		"of which a rule takes all others' place": {[]client.Object{nodeIn("Busy"), aRevision(t)}, nil, `Server node-1 is Busy since 5m (Free)

It means:    In use.
Policy:      small-1
Marks:       Managed
Entry:       4; 0 retries since the last rest

Ways out of Busy:
RULE    TO        NOW             WHEN
Free    Initial   yes             !held (held is false)
Never   Initial   another first   poweredOff

Last moves:
WHEN      FROM      TO        RULE
5m ago    Busy      Initial   Free
60m ago   Initial   Busy      Held
`},
		"of which the BMC decides the rest": {[]client.Object{nodeIn("Initial", refused, leaving), aRevision(t), reported()}, nil, `Server node-1 is Initial since 5m (Free)

It means:    Finding its place.
Until:       Late moves it to Busy at 2026-01-31T12:10:00Z, in 10m0s; 5m0s count so far
Left alone:  the annotation metal.ironcore.dev/operation asks the manager to ignore the server
Deleted:     its deletion was asked for 2m ago
Request:     ForceOff, asked of the BMC 4m ago; the BMC refused it (3 in a row): not now
Power:       On, as the manager stored it last
Policy:      small-1
Marks:       Managed
Entry:       4; 0 retries since the last rest

Ways out of Initial:
RULE   TO     NOW                  WHEN
Held   Busy   no                   held && claimed (held is false)
Seen   Busy   depends on the BMC   reported && poweredOff (poweredOff depends on the BMC, reported is true)
Late   Busy   waits 10m0s          after 15m0s

Last moves:
WHEN      FROM      TO        RULE
5m ago    Busy      Initial   Free
60m ago   Initial   Busy      Held
`},
		"that the manager has not seen": {[]client.Object{nodeIn("", func(s *v1alpha1.Server) { s.Status.Lifecycle = nil })}, nil, `Server node-1 is in no state yet

note: no policy revision governs the server yet, so no rules can be shown
`},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := explain(t.Context(), reader(t, c.refused, c.objects...), "node-1", noon)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			e.text(&terminal.Terminal{Out: &out, Err: &out, Now: noon})
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

func TestAnExplanationInJSONHasListsEvenWhereTheyAreEmpty(t *testing.T) {
	s := nodeIn("", func(s *v1alpha1.Server) { s.Status.Lifecycle = nil })
	e, err := explain(t.Context(), reader(t, nil, s), "node-1", noon)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(e)
	want := `{"name":"node-1","conditions":[],"marks":[],"retries":0,"freezes":[],"budgets":[],"rules":[],"history":[],` +
		`"notes":["no policy revision governs the server yet, so no rules can be shown"]}`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestARuleInJSONTellsTheValuesOfItsNames(t *testing.T) {
	e, err := explain(t.Context(), reader(t, nil, nodeIn("Initial", claimedBy), aRevision(t), reported()), "node-1", noon)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(e.Rules)
	want := `[{"rule":"Held","to":"Busy","when":"held \u0026\u0026 claimed","is":"closed","atoms":{"claimed":"false","held":"true"}},` +
		`{"rule":"Seen","to":"Busy","when":"reported \u0026\u0026 poweredOff","is":"unknown","atoms":{"poweredOff":"unknown","reported":"true"}},` +
		`{"rule":"Late","to":"Busy","after":"15m0s","is":"waits","remaining":"10m0s"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestAServerThatDoesNotExistIsAnError(t *testing.T) {
	if _, err := explain(t.Context(), reader(t, nil), "node-1", noon); err == nil || err.Error() != "there is no server node-1" {
		t.Error(err)
	}
}
