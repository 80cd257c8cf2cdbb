// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/macprefixes"
)

func TestTheRestOfRefusedAccountsIsCountedFromTheLastRefusal(t *testing.T) {
	start := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	now := start
	s := &subject{Options: Options{now: func() time.Time { return now }}.withDefaults()}
	e := &v1alpha1.Endpoint{}
	refuse := func() {
		v := &scope{subject: s, endpoint: e}
		decided := decide(facts{name: "e", row: macprefixes.Row{Type: "bmc"}, found: true})
		progress := v.act(t.Context(), answer{outcome: refused, next: now.Add(coolDown)}, "refused")
		v.record(decided, loop.Outcome{Effect: EffectEnsureBMC, Progress: progress})
	}
	rests := func() time.Duration { return (&scope{subject: s, endpoint: e}).rests("refused") }
	refuse()
	if got := rests(); got != 12*time.Hour {
		t.Errorf("after the first refusal they rest for %s", got)
	}
	now = start.Add(13 * time.Hour)
	if got := rests(); got != 0 {
		t.Errorf("after the cool-down they still rest for %s", got)
	}
	refuse()
	now = now.Add(time.Hour)
	if got := rests(); got != 11*time.Hour {
		t.Errorf("an hour after the second refusal they rest for %s, want 11h", got)
	}
}

func TestLookingAgainAtTheSameRefusalChangesNothing(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.UTC)
	s := &subject{Options: Options{now: func() time.Time { return now }}.withDefaults()}
	e := &v1alpha1.Endpoint{}
	next := now.Add(coolDown)
	record := func() *v1alpha1.Endpoint {
		v := &scope{subject: s, endpoint: e}
		decided := decide(facts{name: "e", row: macprefixes.Row{Type: "bmc"}, found: true})
		progress := v.act(t.Context(), answer{outcome: refused, next: next}, "refused")
		v.record(decided, loop.Outcome{Effect: EffectEnsureBMC, Progress: progress})
		return e.DeepCopy()
	}
	first := record()
	now = now.Add(time.Minute)
	was, is := first.Status.Conditions[1].LastTransitionTime, record().Status.Conditions[1].LastTransitionTime
	if !was.Equal(&is) || was.Nanosecond() != 0 {
		t.Errorf("it was refused at %s, and then at %s", was, is)
	}
}
