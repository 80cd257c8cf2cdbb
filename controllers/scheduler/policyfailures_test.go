// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAServerThatThePolicyFailsForIsToldOfOnceInAWhile(t *testing.T) {
	w := newWorld(t)
	w.policy = perLabel(t)
	w.addServer(aServer("a"))
	w.addServer(aServer("b", labelled("weight", "7")))
	w.addServer(aServer("c", labelled("weight", "heavy")))
	w.deliver(9)
	var told []string
	w.s.recorder = toldAbout{&told}
	// look has the policy asked anew, and says what is told of servers.
	look := func(claim string) []string {
		told = nil
		w.addClaim(aClaim(claim))
		w.deliver(9)
		w.must(w.pass())
		var of []string
		for _, text := range told {
			if text == "*v1alpha1.Server SelectionPolicyFailed the policy cannot be evaluated: selection.rego:3:10: rule score; "+
				"no claim gets this server until it can be, with nobody" {
				of = append(of, text)
			}
		}
		return of
	}
	got := []int{len(look("c1")), len(look("c2"))}
	w.now = w.now.Add(tellFailureAgain + time.Second)
	got = append(got, len(look("c3")))
	if diff := cmp.Diff([]int{1, 0, 1}, got); diff != "" {
		t.Errorf("told so often (-want +got)\n%s", diff)
	}
}

func TestWhatIsRememberedOfFailingPoliciesIsBounded(t *testing.T) {
	f := policyFailures{}
	for i := range 3 * mostFailures {
		f.isNew(time.Duration(i).String(), "boom", epoch)
	}
	if len(f) > mostFailures {
		t.Errorf("%d servers are remembered", len(f))
	}
}
