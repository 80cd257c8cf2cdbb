// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/metalaw/metalaw/engine"
)

func shadowsOf(t *testing.T) *Shadows {
	t.Helper()
	s, err := NewShadows(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shown is what a flush would store: "Discovery R1/R2 x3 (s1): want; got".
func shown(s *Shadows, shadow string) []string {
	delta := s.take(shadow)
	all := []string{fmt.Sprintf("%d evaluated", delta.Evaluated)}
	for _, d := range delta.Differences {
		all = append(all, fmt.Sprintf("%s %s/%s x%d (%s): %s; %s", d.State, d.Rule, d.ShadowRule, d.Count, d.LastServer, d.Want, d.Got))
	}
	return all
}

func TestADifferenceCountsOnceUntilItChanges(t *testing.T) {
	stays := &engine.Decision{From: "A", To: "A", Effects: []engine.Effect{{Name: "PowerOff"}}}
	moves := &engine.Decision{From: "A", To: "B", Rule: "Go"}
	renamed := &engine.Decision{From: "A", To: "B", Rule: "Leave"}
	halts := &engine.Decision{From: "A", To: "A", Halt: &engine.Halt{Cause: engine.HaltSafety, Rule: "HandsOff"}}
	s := shadowsOf(t)
	see := func(server string, want, got *engine.Decision) { s.Observe("v2", server, want, got, time.Unix(0, 0)) }
	for range 5 {
		see("s1", moves, stays)
	}
	see("s2", moves, stays)
	see("s3", moves, renamed) // another name for the same rule is no difference
	want := []string{"7 evaluated", "A Go/ x2 (s2): moves to B by Go; stays in A and ensures PowerOff"}
	if diff := cmp.Diff(want, shown(s, "v2")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	see("s1", moves, stays) // still the same one
	see("s2", moves, halts)
	see("s1", moves, moves)
	see("s1", moves, stays) // again
	want = []string{"4 evaluated", "A Go/ x1 (s1): moves to B by Go; stays in A and ensures PowerOff",
		"A Go/HandsOff x1 (s2): moves to B by Go; halts at HandsOff: SafetyRule"}
	delta := s.take("v2")
	s.giveBack("v2", delta) // it could not be stored
	if diff := cmp.Diff(want, shown(s, "v2")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0 evaluated"}, shown(s, "v2")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatIsGivenBackCountsBesideWhatWasSeenSince(t *testing.T) {
	moves, stays := &engine.Decision{From: "A", To: "B", Rule: "Go"}, &engine.Decision{From: "A", To: "A"}
	marks := &engine.Decision{From: "A", To: "A", Marks: []string{"Younger"}}
	for name, c := range map[string]struct {
		others int // so many ways to differ are known besides
		want   string
	}{
		"as the same way, with the younger example":    {0, "A Go/ x2 (young): moves to B by Go; stays in A, marks Younger"},
		"among those that are not told apart any more": {maxWays, " / x2 (young): moves to B by Go; stays in A, marks Younger"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shadowsOf(t)
			fill := func() {
				for i := range c.others {
					s.Observe("v2", fmt.Sprint("other", i), &engine.Decision{From: "O", To: "B", Rule: fmt.Sprintf("R%03d", i)}, stays, time.Unix(0, 0))
				}
			}
			fill()
			s.Observe("v2", "old", moves, stays, time.Unix(0, 0))
			unstored := s.take("v2")
			for i := range c.others { // they differ anew
				s.Observe("v2", fmt.Sprint("other", i), stays, stays, time.Unix(1, 0))
			}
			fill()
			s.Observe("v2", "young", moves, marks, time.Unix(1, 0))
			s.giveBack("v2", unstored)
			if got := shown(s, "v2"); !slices.Contains(got, c.want) {
				t.Errorf("got %q, want %q among it", got, c.want)
			}
		})
	}
}

func TestWhatAnEffectWaitsForIsADifference(t *testing.T) {
	stays := &engine.Decision{From: "A", To: "A"}
	waits := &engine.Decision{From: "A", To: "A", Awaits: &engine.Awaited{Effect: "PowerOn", Rule: "IdentityFirst"}}
	s := shadowsOf(t)
	s.Observe("v2", "s1", stays, waits, time.Unix(0, 0))
	s.Observe("v2", "s2", waits, waits, time.Unix(0, 0))
	want := []string{"2 evaluated", "A / x1 (s1): stays in A; stays in A, waits for IdentityFirst before PowerOn"}
	if diff := cmp.Diff(want, shown(s, "v2")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWaysToDifferAreBounded(t *testing.T) {
	s := shadowsOf(t)
	for i := range 2 * maxWays {
		s.Observe("v2", "s1", &engine.Decision{From: "A", To: "B", Rule: fmt.Sprintf("R%03d", i)}, &engine.Decision{From: "A", To: "A"}, time.Unix(0, 0))
	}
	delta := s.take("v2")
	var sum int64
	for _, d := range delta.Differences {
		sum += d.Count
	}
	if len(delta.Differences) != maxWays+1 || sum != 2*maxWays {
		t.Errorf("%d ways, %d differences", len(delta.Differences), sum)
	}
}

func TestNothingIsRememberedOfWhatIsGone(t *testing.T) {
	s := shadowsOf(t)
	moves, stays := &engine.Decision{From: "A", To: "B", Rule: "Go"}, &engine.Decision{From: "A", To: "A"}
	s.Observe("v2", "s1", moves, stays, time.Unix(0, 0))
	s.Forget("s1")
	if len(s.all["v2"].servers) != 0 {
		t.Error("a server that is gone is remembered")
	}
	s.keep(func(string) bool { return false })
	if len(s.all) != 0 {
		t.Error("a shadow that is none any more is remembered")
	}
}
