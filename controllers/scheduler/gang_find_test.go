// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

func TestManyMembersThatAreHardToPleaseAreServed(t *testing.T) {
	w := newWorld(t)
	for i := 1; i <= 8; i++ {
		w.addServer(aServer(fmt.Sprintf("s%02d", i)))
		w.addServer(aServer(fmt.Sprintf("t%02d", i)))
		w.addClaim(aClaim(fmt.Sprintf("any-%02d", i), placed("gang: {name: db, size: 16}")))
		w.addClaim(aClaim(fmt.Sprintf("picky-%02d", i), placed(fmt.Sprintf("where: server.name == \"s%02d\"\ngang: {name: db, size: 16}", i))))
	}
	w.deliver(99)
	w.must(w.pass())
	w.check()
	if got := len(w.boundClaims()); got != 16 {
		v, _ := w.s.Verdict("uid-picky-08")
		t.Errorf("%d are bound; one is told %q", got, v.Message)
	}
}

func TestAGangThatIsShortIsToldHowManyOfItCanHaveServers(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.addServer(aServer(fmt.Sprintf("s%d", i)))
		w.addClaim(aClaim(fmt.Sprintf("picky-%d", i), placed(fmt.Sprintf("where: server.name == \"s%d\"\ngang: {name: db, size: 5}", i))))
	}
	w.addClaim(aClaim("any-0", placed("gang: {name: db, size: 5}")))
	w.addClaim(aClaim("any-1", placed("gang: {name: db, size: 5}")))
	w.deliver(99)
	w.must(w.pass())
	const want = `gang "db": servers for 3 of its 5 members can be had now, 2 short; `
	if v, _ := w.s.Verdict("uid-any-0"); !strings.HasPrefix(v.Message, want) {
		t.Errorf("it is told %q", v.Message)
	}
}

// drawGang is a gang whose members may each have some of the servers; spread has all of them keep apart in the same way, or in ways
// of their own.
func drawGang(t *rapid.T, w *world, spread string) (may [][]string) {
	servers := rapid.IntRange(2, 6).Draw(t, "servers")
	for i := range servers {
		rack := rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(t, "rack")
		state := rapid.SampledFrom([]v1alpha1.ServerState{"Available", "Available", "Available", "Cleanup"}).Draw(t, "state")
		w.addServer(aServer(fmt.Sprintf("s%d", i), labelled(policies.RackMetadata, rack), inState(state)))
	}
	size := rapid.IntRange(2, 4).Draw(t, "size")
	for m := range size {
		var names []string
		for i := range servers {
			if rapid.IntRange(0, 2).Draw(t, "may") > 0 {
				names = append(names, fmt.Sprintf("%q", fmt.Sprintf("s%d", i)))
			}
		}
		text := fmt.Sprintf("gang: {name: db, size: %d}\n", size)
		if spread == "" || spread == "its own" {
			text += "where: server.name in [" + strings.Join(append(names, `"nowhere"`), ", ") + "]\n"
		} else {
			names = nil
			for i := range servers {
				names = append(names, fmt.Sprintf("%q", fmt.Sprintf("s%d", i)))
			}
			text += spread
		}
		if spread == "its own" && rapid.Bool().Draw(t, "spread") {
			text += "spread: {key: rack}\n"
		}
		w.addClaim(aClaim(fmt.Sprintf("db-%d", m), placed(text)))
		may = append(may, names)
	}
	return may
}

// servable tries every order of the members and every server for each, whatever stands where if maxSkew is 0.
func (w *world) servable(may [][]string, left []int, counts map[string]int, taken map[string]bool, maxSkew int) bool {
	if len(left) == 0 {
		return true
	}
	least := 99
	for _, n := range counts {
		least = min(least, n)
	}
	for i, m := range left {
		rest := slices.Delete(slices.Clone(left), i, i+1)
		for _, s := range w.servers() {
			rack := policies.RackOf(s)
			if taken[s.Name] || s.Status.State != v1alpha1.StateAvailable || !slices.Contains(may[m], fmt.Sprintf("%q", s.Name)) ||
				maxSkew > 0 && counts[rack]+1-least > maxSkew {
				continue
			}
			taken[s.Name] = true
			counts[rack]++
			can := w.servable(may, rest, counts, taken, maxSkew)
			counts[rack]--
			taken[s.Name] = false
			if can {
				return true
			}
		}
		if maxSkew == 0 {
			return false // the order does not matter
		}
	}
	return false
}

func TestAGangIsServedWheneverItCanBe(t *testing.T) {
	for name, tc := range map[string]struct {
		spread string
		skew   int
		exact  bool
	}{
		"members that may have this or that":        {"", 0, true},
		"members that keep apart in the same way":   {"spread: {key: rack}\n", 1, true},
		"members of which two may stand together":   {"spread: {key: rack, maxSkew: 2}\n", 2, true},
		"members that keep apart in ways of theirs": {"its own", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newWorld(t)
				may := drawGang(t, w, tc.spread)
				left := make([]int, len(may))
				for i := range left {
					left[i] = i
				}
				counts := map[string]int{}
				for _, s := range w.servers() {
					counts[policies.RackOf(s)] = 0
				}
				want := w.servable(may, left, counts, map[string]bool{}, tc.skew)
				w.deliver(99)
				w.must(w.pass())
				w.check()
				bound := len(w.boundClaims())
				if bound != 0 && bound != len(may) || bound > 0 && !want || tc.exact && want && bound == 0 {
					t.Fatalf("%d of %d are bound; they could be: %t", bound, len(may), want)
				}
			})
		})
	}
}
