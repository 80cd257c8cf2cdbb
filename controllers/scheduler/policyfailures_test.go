// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
)

// failingBy is a policy that fails for a server without a number in the label that a claim asks for, and for a claim that asks for no
// number of points.
func failingBy(t *testing.T) *selection.Policy {
	t.Helper()
	p, found := selection.Compile(map[string][]byte{"selection.rego": []byte("package metalaw.selection\nallow := true\n" +
		"score := to_number(input.candidate.labels.weight) + to_number(object.get(input.claim.labels, \"points\", \"0\")) if input.claim.image != \"by-size\"\n" +
		"score := to_number(input.candidate.labels.size) if input.claim.image == \"by-size\"\n")})
	if p == nil {
		t.Fatal(found)
	}
	return p
}

// eventsOfServers takes down each Event of a server but that it was bound.
type eventsOfServers struct{ all *[]string }

func (n eventsOfServers) Eventf(about, _ runtime.Object, kind, reason, _, words string, args ...any) {
	if s, ok := about.(*v1alpha1.Server); ok && reason != v1alpha1.ReasonBound {
		*n.all = append(*n.all, fmt.Sprintf("%s %s %s %s", s.Name, kind, reason, fmt.Sprintf(words, args...)))
	}
}

func TestServersThatThePolicyFailsForAreToldOfOnceInAWhile(t *testing.T) {
	asking := func(image string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.Spec.Image = image }
	}
	lots := func(c *v1alpha1.ServerClaim) { c.Labels = map[string]string{"points": "lots"} }
	w := newWorld(t)
	w.policy = failingBy(t)
	for name, labels := range map[string][]func(*v1alpha1.Server){
		"fits":      {labelled("weight", "1"), labelled("size", "1")},
		"fits-too":  {labelled("weight", "2"), labelled("size", "2")},
		"heavy":     {labelled("weight", "heavy"), labelled("size", "large")},
		"heavy-too": {labelled("weight", "heavy"), labelled("size", "3")},
	} {
		w.addServer(aServer(name, labels...))
	}
	w.deliver(9)
	var told []string
	w.s.messages.recorder = eventsOfServers{&told}
	number := 0
	// after has the policy asked by a claim some time later, and says what is told of servers.
	after := func(pause time.Duration, change func(*v1alpha1.ServerClaim)) []string {
		told, number, w.now = nil, number+1, w.now.Add(pause)
		w.addClaim(aClaim(fmt.Sprint("c", number), change))
		w.deliver(9)
		w.must(w.pass())
		of := map[string]bool{}
		for _, text := range told {
			of[text] = true
		}
		return slices.Sorted(maps.Keys(of))
	}
	const failed = " Warning SelectionPolicyFailed the policy cannot be evaluated: selection.rego:3:10: rule score; claims for which that is so do not get this server"
	for _, step := range []struct {
		name  string
		after time.Duration
		claim func(*v1alpha1.ServerClaim)
		want  []string
	}{
		{"a claim that it fails for whatever the server is says nothing of servers", 0, lots, nil},
		{"each server that it fails for is told of", 0, asking("by-weight"), []string{"heavy" + failed, "heavy-too" + failed}},
		{"and not again soon", time.Second, asking("by-weight"), nil},
		{"also where it fails with something else", time.Second, asking("by-size"), nil},
	} {
		if diff := cmp.Diff(step.want, after(step.after, step.claim)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step.name, diff)
		}
	}
	w.addServer(aServer("fits-more", labelled("weight", "1"), labelled("size", "1")))
	if got := after(reportFailureAgain, asking("by-size")); len(got) != 1 || got[0][:6] != "heavy " {
		t.Errorf("a while later: %q", got)
	}
}
