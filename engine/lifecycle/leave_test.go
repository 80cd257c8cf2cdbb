// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/metalaw/metalaw/engine"
)

func TestWhetherAStateMayBeLeftWhileSomeFactsStayAsTheyAre(t *testing.T) {
	l := compiled(t, `
apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Bench
define:
  sold: lamp.sold
  dark: lamp.power == "Off"
interrupts:
- {rule: Broken, to: Bench, when: dark, except: [Bench]}
states:
  Bench:
    means: It is tested.
    stable: true
    exits:
    - {rule: Sold, to: Window, when: sold && dark}
  Window:
    means: It is shown.
    stable: true
    exits:
    - {rule: Fetched, to: Gone, when: "!sold || dark"}
    - {rule: Late,    to: Gone, when: sold, after: 1m}
  Box:
    means: It waits.
    exits:
    - {rule: Expired, to: Gone, after: 1m}
  Gone:
    means: It is gone.
    stable: true
`)
	for name, c := range map[string]struct {
		state engine.State
		sold  bool
		fixed []string
		want  bool
	}{
		"nothing is fixed":                               {"Bench", false, nil, true},
		"one fact closes the only way out":               {"Bench", false, []string{"lamp.sold"}, false},
		"it leaves the way out open":                     {"Bench", true, []string{"lamp.sold"}, true},
		"another closes it":                              {"Bench", true, []string{"lamp.sold", "lamp.power"}, true},
		"what would close one way leaves another open":   {"Window", true, []string{"lamp.sold"}, true},
		"time passes":                                    {"Box", false, []string{"lamp.sold"}, true},
		"nothing leads from it, for interrupts are none": {"Gone", false, nil, false},
		"a state that is not defined":                    {"Attic", false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := observed{words(), lamp(string(c.state)).with("lamp.sold", engine.BoolValue(c.sold))}
			if got := l.MayLeave(c.state, f, c.fixed...); got != c.want {
				t.Errorf("may be left: %t", got)
			}
		})
	}
}
