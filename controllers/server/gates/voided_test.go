// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

func TestWhatFollowsAVoidedEntry(t *testing.T) {
	b, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	voided := func(entry int64) func(*Input) {
		return func(in *Input) {
			in.Observation.Inventory = &policyv1alpha1.ServerInventory{Enrolment: &policyv1alpha1.Enrolment{Entry: entry, Voided: true}}
		}
	}
	moved := func(moves ...v1alpha1.LifecycleMove) func(*Input) {
		return func(in *Input) { in.Observation.Server.Status.Lifecycle.History = moves }
	}
	move := func(from, to v1alpha1.ServerState, rule string) v1alpha1.LifecycleMove {
		return v1alpha1.LifecycleMove{From: from, To: to, Rule: rule}
	}
	erases := func(in *Input) {
		in.Observation.Inventory.Wipe = &policyv1alpha1.WipeReport{Entry: 7, State: policyv1alpha1.WipeRunning,
			UpdatedAt: metav1.NewMicroTime(in.Observation.Now.Add(-time.Second))}
	}
	for name, c := range map[string]struct {
		state   v1alpha1.ServerState
		changes []func(*Input)
		to      string
	}{
		"the server begins anew":                {v1alpha1.StateDiscovery, []func(*Input){voided(7)}, "Initial"},
		"not for an entry before":               {v1alpha1.StateDiscovery, []func(*Input){voided(6)}, ""},
		"not while an agent may erase":          {v1alpha1.StateCleanup, []func(*Input){voided(7), erases}, ""},
		"a second time in a row leads to Error": {v1alpha1.StateDiscovery, []func(*Input){voided(7), moved(move("Discovery", "Initial", "EntryVoided"), move("Initial", "Discovery", "ProbeDue"))}, "Error"},
		"a time that a person retried since is the first": {v1alpha1.StateDiscovery, []func(*Input){voided(7),
			moved(move("Discovery", "Initial", "EntryVoided"), move("Initial", "Discovery", "ProbeDue"), move("Discovery", "Error", "EntryVoided"),
				move("Error", "Initial", "Cleared"), move("Initial", "Discovery", "ProbeDue"))}, "Initial"},
		"so is one after the server was offered": {v1alpha1.StateDiscovery, []func(*Input){voided(7),
			moved(move("Discovery", "Initial", "EntryVoided"), move("Initial", "Discovery", "ProbeDue"), move("Discovery", "Available", "ProbeReported"),
				move("Available", "Initial", "DataFound"), move("Initial", "Discovery", "ProbeDue"))}, "Initial"},
	} {
		t.Run(name, func(t *testing.T) {
			out := Decide(at(b, c.state, c.changes...))
			got := ""
			if out.Gate == EntryVoided {
				got = string(out.Decision.To)
				if out.Decision.Rule != v1alpha1.RuleEntryVoided || !out.Decision.Moves() {
					t.Errorf("%+v", out.Decision)
				}
			}
			if got != c.to {
				t.Errorf("it goes to %q, want %q (%+v)", got, c.to, out.Decision)
			}
		})
	}
}
