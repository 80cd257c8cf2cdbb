// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	rego "github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/selection"
)

func aMember(name string, change func(*v1alpha1.ServerClaim)) v1alpha1.ServerClaim {
	c := v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name),
		Finalizers:  []string{v1alpha1.FinalizerServerClaim},
		Annotations: map[string]string{v1alpha1.PlacementAnnotation: "gang: {name: db, size: 2}"}}}
	change(&c)
	return c
}

func aServer(name, claim string) v1alpha1.Server {
	s := v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1alpha1.ServerStatus{State: v1alpha1.StateAvailable, PowerState: v1alpha1.PowerStateOff}}
	if claim != "" {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "team", Name: claim}
		s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: "uid-" + claim}
	}
	return s
}

// allowing is a selection policy that turns nothing away.
func allowing(t *testing.T) *selection.Policy {
	t.Helper()
	policy, found := selection.Compile(map[string][]byte{"selection.rego": []byte("package metalaw.selection\n\nallow := true\n")})
	if policy == nil {
		t.Fatal(found)
	}
	return policy
}

// What a gang waits for is what the scheduler waits for.
func TestAGangIsExplainedByTheMembersThatTheSchedulerCounts(t *testing.T) {
	policy := allowing(t)
	bound := func(server string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerRef = &corev1.LocalObjectReference{Name: server}
			c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBound, Status: metav1.ConditionTrue}}
		}
	}
	first := func(server string) func(*v1alpha1.ServerClaim) { // it waits as well, and comes before
		return func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerRef, c.CreationTimestamp = &corev1.LocalObjectReference{Name: server}, metav1.NewTime(time.Unix(-60, 0))
		}
	}
	made := func(c *v1alpha1.ServerClaim) { c.CreationTimestamp = metav1.NewTime(time.Unix(0, 0)) }
	const incomplete = "its gang: 1 of its 2 members exist; none of them gets a server until all do"
	const lost = "its gang: 1 of its 2 members name a server that is not theirs; none of the others gets a server until that is mended"
	for name, c := range map[string]struct {
		other   func(*v1alpha1.ServerClaim)
		servers []v1alpha1.Server
		quota   int
		want    string
	}{
		"both wait":                                      {func(*v1alpha1.ServerClaim) {}, []v1alpha1.Server{aServer("a", ""), aServer("b", "")}, 2, "its turn: it would get a now"},
		"the other one is left alone":                    {func(c *v1alpha1.ServerClaim) { c.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationIgnore }, []v1alpha1.Server{aServer("a", ""), aServer("b", "")}, 2, incomplete},
		"the other one is not prepared":                  {func(c *v1alpha1.ServerClaim) { c.Finalizers = nil }, []v1alpha1.Server{aServer("a", ""), aServer("b", "")}, 2, incomplete},
		"the other one has its server":                   {bound("a"), []v1alpha1.Server{aServer("a", "db-1"), aServer("b", "")}, 2, "its turn: it would get b now"},
		"the other one lost its server":                  {bound("a"), []v1alpha1.Server{aServer("a", "else"), aServer("b", "")}, 2, lost},
		"the other one says that it lost its server":     {first("a"), []v1alpha1.Server{aServer("a", ""), aServer("b", "")}, 2, lost},
		"the other one lost its server to another claim": {first("a"), []v1alpha1.Server{aServer("a", "else"), aServer("b", ""), aServer("c", "")}, 2, lost},
		"the other one names a server that is no more":   {first("gone"), []v1alpha1.Server{aServer("a", ""), aServer("b", "")}, 2, lost},
		"the other one has its server, and does not say so yet": {first("a"), []v1alpha1.Server{aServer("a", "db-1"), aServer("b", "")}, 2,
			"its turn: it would get b now"},
		"the quota has no room for both": {func(*v1alpha1.ServerClaim) {}, []v1alpha1.Server{aServer("a", ""), aServer("b", "")}, 1,
			"its gang: it takes 2 servers, and the quota of the namespace allows its claims 1. None of its members gets one until the quota is raised or the gang is smaller"},
		"the fleet has too few servers, whichever get free": {func(*v1alpha1.ServerClaim) {}, []v1alpha1.Server{aServer("a", "else")}, 2,
			"its gang: it takes 2 servers, and the whole fleet, free or not, has 1; its members wait until there are more or the gang is smaller"},
		"one is reserved for the other": {func(*v1alpha1.ServerClaim) {}, []v1alpha1.Server{aServer("a", "db-1"), aServer("b", "")}, 2, "its turn: it would get b now"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{now: time.Unix(0, 0), servers: c.servers, claims: []v1alpha1.ServerClaim{aMember("db-0", made), aMember("db-1", made)},
				bundle: &bundle.Bundle{Selection: policy}}
			c.other(&w.claims[1])
			w.bundle.Settings.Claims.Quota.Default = &c.quota
			w.snapshot(nil)
			e := &explanation{}
			if err := e.assess(t.Context(), w, &w.claims[0], false); err != nil {
				t.Fatal(err)
			}
			if e.WaitsFor != c.want {
				t.Errorf("got %q, want %q", e.WaitsFor, c.want)
			}
		})
	}
}

// A server that another member would get is nobody's: what the members wait for is another.
func TestTheMembersOfAGangThatIsShortWaitForTheSame(t *testing.T) {
	cordoned := aServer("b", "")
	cordoned.Spec.Unclaimable = true
	asking := func(where string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.Annotations[v1alpha1.PlacementAnnotation] += "\n" + where }
	}
	const nearest = "more servers for its gang; the nearest is "
	const onlyFellow = nearest + "a: another member of its gang would get it (gang)"
	const either, onlyA, waitsForB = `where: server.name in ["a", "b"]`, `where: server.name == "a"`, nearest + "b: it is cordoned (spec.unclaimable) (unclaimable)"
	for name, c := range map[string]struct {
		places [2]string
		want   [2]string
		codes  string
	}{
		"members that ask for the same": {[2]string{either, either}, [2]string{waitsForB, waitsForB}, "gang 1 placement 1 unclaimable 1 "},
		"one that could have its server": {[2]string{onlyA, either}, [2]string{"its gang: no server is left for its member db-1", waitsForB},
			"gang 1 placement 1 unclaimable 1 "},
		"members that ask for one server alone": {[2]string{onlyA, onlyA},
			[2]string{onlyFellow, onlyFellow}, "gang 1 placement 1 unclaimable 1 "},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{now: time.Unix(0, 0), servers: []v1alpha1.Server{aServer("a", ""), cordoned, aServer("c", "")},
				claims: []v1alpha1.ServerClaim{aMember("db-0", asking(c.places[0])), aMember("db-1", asking(c.places[1]))},
				bundle: &bundle.Bundle{Selection: allowing(t)}}
			w.snapshot(nil)
			for i := range w.claims {
				e := &explanation{}
				if err := e.assess(t.Context(), w, &w.claims[i], false); err != nil {
					t.Fatal(err)
				}
				codes := ""
				for _, one := range e.Codes {
					codes += fmt.Sprintf("%s %d ", one.Code, one.Servers)
				}
				if e.WaitsFor != c.want[i] || codes != c.codes {
					t.Errorf("%s: got %q, want %q; %s", w.claims[i].Name, e.WaitsFor, c.want[i], codes)
				}
			}
		})
	}
}

// Whoever wrote serverRef is held to the rules as well, because the scheduler asks them about it.
func TestAClaimThatThePolicyForbidsWaitsForThat(t *testing.T) {
	rules, found := rego.Compile(map[string][]byte{"admission.rego": []byte(
		`package metalaw.admission

deny contains {"code": "image", "message": "only linux boots here"} if input.object.spec.image != "linux"
`)})
	if rules == nil {
		t.Fatal(found.Err())
	}
	alone := func(image, server string) v1alpha1.ServerClaim {
		return aMember("web", func(c *v1alpha1.ServerClaim) {
			c.Annotations, c.Spec.Image = nil, image
			if server != "" {
				c.Spec.ServerRef = &corev1.LocalObjectReference{Name: server}
			}
		})
	}
	const forbidden = "policy fleet-1 forbids the claim: only linux boots here [image] (ClaimDenied)"
	for name, c := range map[string]struct {
		claim v1alpha1.ServerClaim
		held  string
		want  string
	}{
		"one that is fine":              {alone("linux", ""), "", "its turn: it would get a now"},
		"one that is forbidden":         {alone("windows", ""), "", forbidden},
		"one that names its server":     {alone("windows", "a"), "", forbidden},
		"one that has a server already": {alone("windows", ""), "web", "nothing: the server a is reserved for it, and on its way"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{now: time.Unix(0, 0), servers: []v1alpha1.Server{aServer("a", c.held)}, claims: []v1alpha1.ServerClaim{c.claim},
				bundle: &bundle.Bundle{Selection: allowing(t), Admission: rules, Revision: engine.Revision{Name: "fleet-1"}}}
			w.snapshot(nil)
			e := &explanation{}
			if err := e.assess(t.Context(), w, &w.claims[0], false); err != nil {
				t.Fatal(err)
			}
			if e.WaitsFor != c.want {
				t.Errorf("got %q, want %q", e.WaitsFor, c.want)
			}
		})
	}
}
