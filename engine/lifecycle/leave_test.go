// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"

	"github.com/metalaw/metalaw/engine"
)

func TestWhetherAStateMayBeLeftWhileSomeFactsStayAsTheyAre(t *testing.T) {
	l := compiled(t, `
apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Bench
define:
  claimed: claim.bound
  stopped: bmc.power == "Off"
interrupts:
- {rule: Broken, to: Bench, when: stopped, except: [Bench]}
states:
  Bench:
    means: It is inspected.
    stable: true
    exits:
    - {rule: Claimed, to: Offered, when: claimed && stopped}
  Offered:
    means: It is offered.
    stable: true
    exits:
    - {rule: Fetched, to: Gone, when: "!claimed || stopped"}
    - {rule: Late,    to: Gone, when: claimed, after: 1m}
  Staged:
    means: It waits.
    exits:
    - {rule: Expired, to: Gone, after: 1m}
  Gone:
    means: It is gone.
    stable: true
`)
	for name, c := range map[string]struct {
		state   engine.State
		claimed bool
		fixed   []string
		want    bool
	}{
		"nothing is fixed":                               {"Bench", false, nil, true},
		"one fact closes the only way out":               {"Bench", false, []string{"claim.bound"}, false},
		"it leaves the way out open":                     {"Bench", true, []string{"claim.bound"}, true},
		"another closes it":                              {"Bench", true, []string{"claim.bound", "bmc.power"}, true},
		"what would close one way leaves another open":   {"Offered", true, []string{"claim.bound"}, true},
		"time passes":                                    {"Staged", false, []string{"claim.bound"}, true},
		"nothing leads from it, for interrupts are none": {"Gone", false, nil, false},
		"a state that is not defined":                    {"Legacy", false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := observed{words(), machine(string(c.state)).with("claim.bound", engine.BoolValue(c.claimed))}
			if got := l.MayLeave(c.state, f, c.fixed...); got != c.want {
				t.Errorf("may be left: %t", got)
			}
		})
	}
}

func TestWaysSayWhatTurnsOnFactsOfWhichNothingIsKnown(t *testing.T) {
	l := compiled(t, `
apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Bench
define:
  claimed: claim.bound
  stopped: bmc.power == "Off"
states:
  Bench:
    means: It is inspected.
    stable: true
    exits:
    - {rule: Claimed, to: Gone, when: claimed && stopped}
    - {rule: Stopped, to: Gone, when: stopped}
    - {rule: Late,    to: Gone, after: 1m}
    - {rule: Free,    to: Gone, when: "!claimed || stopped"}
    - {rule: Behind,  to: Gone, when: claimed}
  Gone:
    means: It is gone.
    stable: true
`)
	var got []string
	for _, step := range l.Ways(observed{words(), machine("Bench")}, "bmc") {
		got = append(got, step.Rule+" "+step.Result)
	}
	want := []string{"Claimed false", "Stopped error", "Late waiting", "Free true"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if ways := l.Ways(observed{words(), machine("Legacy")}, "bmc"); ways != nil {
		t.Errorf("a state that is not defined has ways: %v", ways)
	}
}
