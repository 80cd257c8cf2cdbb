// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

func TestADirtyServerIsNeverOffered(t *testing.T) {
	at := func(state v1alpha1.ServerState, marks ...string) *v1alpha1.Server {
		s := &v1alpha1.Server{}
		s.Status.State = state
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 3, Marks: marks}
		return s
	}
	for name, c := range map[string]struct {
		from, to *v1alpha1.Server
		denied   bool
	}{
		"a move that leaves Dirty standing is refused, even the manager's": {at("Cleanup", "Dirty"), at("Available", "Dirty"), true},
		"a move that clears Dirty passes":                                  {at("Cleanup", "Dirty"), at("Available"), false},
		"a server that is Available already may change otherwise":          {at("Available", "Dirty"), at("Available", "Dirty"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var found review.Findings
			checkStatus(review.Change[v1alpha1.Server]{Old: c.from, New: c.to, ByManager: true},
				statusFacts{revision: "default", governing: defaults(t)}, &found)
			if denied := len(found.Denials) > 0; denied != c.denied {
				t.Errorf("denied: %t, %+v", denied, found)
			}
		})
	}
}

func TestAServerThatWasNeverGovernedMovesFromTheStateThatIsStored(t *testing.T) {
	for name, c := range map[string]struct {
		to     v1alpha1.ServerState
		denied bool
	}{
		"one that may not stay Available finds its place in Initial": {"Initial", false},
		"and goes nowhere that Initial alone leads to":               {"Cleanup", true},
		"nor where it would keep a claim's data":                     {"Released", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := defaults(t)
			w := newWorld(t, b)
			before := server(in(v1alpha1.StateAvailable))
			got, _ := w.ask(PathValidateServer, manager, admissionv1.Update, before, server(in(c.to), governedBy(b.Revision.Name)), inStatus)
			if denied := got != ""; denied != c.denied {
				t.Errorf("denied: %t, %s", denied, got)
			}
		})
	}
}

func TestAServerThatAnotherRevisionTakesOverFindsItsPlaceFromTheInitialState(t *testing.T) {
	at := func(state v1alpha1.ServerState, revision, rule string, entry int64) *v1alpha1.Server {
		s := &v1alpha1.Server{}
		s.Status.State = state
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: entry, Revision: revision, Rule: rule}
		return s
	}
	halted := at("Released", "bad", "ClaimEndedRetained", 3)
	for name, c := range map[string]struct {
		to     *v1alpha1.Server
		user   bool
		denied bool
	}{
		"as a new entry":                     {at("Initial", "default", v1alpha1.RuleAdopted, 4), false, false},
		"the manager alone records that":     {at("Initial", "default", v1alpha1.RuleAdopted, 4), true, true},
		"not within the entry that it had":   {at("Initial", "default", v1alpha1.RuleAdopted, 3), false, true},
		"not under the revision that it had": {at("Initial", "bad", v1alpha1.RuleAdopted, 4), false, true},
		"by no other rule":                   {at("Initial", "default", "Wiped", 4), false, true},
		"and nowhere else":                   {at("Available", "default", v1alpha1.RuleAdopted, 4), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var found review.Findings
			checkStatus(review.Change[v1alpha1.Server]{Old: halted, New: c.to, ByManager: !c.user}, statusFacts{revision: "default", governing: defaults(t)}, &found)
			if denied := len(found.Denials) > 0; denied != c.denied {
				t.Errorf("denied: %t, %+v", denied, found)
			}
		})
	}
}

func TestAnEntryForWhichTwoAgentsReportedEndsInTheInitialStateOrInError(t *testing.T) {
	at := func(state v1alpha1.ServerState, rule string, entry int64) *v1alpha1.Server {
		s := &v1alpha1.Server{}
		s.Status.State = state
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: entry, Revision: "default", Rule: rule}
		return s
	}
	for name, c := range map[string]struct {
		to     *v1alpha1.Server
		user   bool
		denied bool
	}{
		"from the initial state anew":      {at("Initial", v1alpha1.RuleEntryVoided, 4), false, false},
		"in Error":                         {at("Error", v1alpha1.RuleEntryVoided, 4), false, false},
		"the manager alone records that":   {at("Initial", v1alpha1.RuleEntryVoided, 4), true, true},
		"not within the entry that it had": {at("Initial", v1alpha1.RuleEntryVoided, 3), false, true},
		"and nowhere else":                 {at("Available", v1alpha1.RuleEntryVoided, 4), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var found review.Findings
			checkStatus(review.Change[v1alpha1.Server]{Old: at("Released", "ClaimEndedRetained", 3), New: c.to, ByManager: !c.user},
				statusFacts{revision: "default", governing: defaults(t)}, &found)
			if denied := len(found.Denials) > 0; denied != c.denied {
				t.Errorf("denied: %t, %+v", denied, found)
			}
		})
	}
}
