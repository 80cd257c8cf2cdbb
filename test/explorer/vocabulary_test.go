// SPDX-License-Identifier: Apache-2.0

package explorer_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/explorer"
)

// The explorer has words of its own, and a bundle may use any that the engine has.
func TestTheExplorerKnowsEveryWordOfABundle(t *testing.T) {
	words := policies.Vocabulary()
	for _, f := range words.Facts {
		if fact, _ := explorer.Knows(f.Name, ""); !fact {
			t.Errorf("it does not know the fact %s", f.Name)
		}
	}
	for _, e := range words.Effects {
		if _, effect := explorer.Knows("", e.Name); !effect {
			t.Errorf("it does not know the effect %s", e.Name)
		}
	}
	for _, r := range safetyRules(t) {
		if judged := cmp.Or(judgedBy[r], r); !rules[judged] && !ofTheShell[r] {
			t.Errorf("it has no rule %s", judged)
		}
	}
}

// ofTheShell are the safety rules that no lifecycle can break in the explorer's world, because whoever writes to a BMC
// compares the identity right before, and an ignored server is not visited. Nor is there a power between On and Off in that
// world: OffForMaintenance is waited for wherever it does not hold, so that no lifecycle can break it. So is NoRebootWithoutConsent.
var ofTheShell = map[explorer.Rule]bool{"IdentityFirst": true, "OffForMaintenance": true, "NoRebootWithoutConsent": true}

// judgedBy tells under which rule the explorer judges what a safety rule keeps from happening: by what it does to machines.
var judgedBy = map[explorer.Rule]explorer.Rule{
	"PowerIsTheHolders":        explorer.OnlyForTheHolder,
	"ObservedUntilConsent":     explorer.HandsOff,
	"LeftToItself":             explorer.HandsOff,
	"ParkedUntilAsked":         explorer.HandsOff,
	"DecommissionedUntilAsked": explorer.HandsOff,
	"ProbeBeginsFromOff":       explorer.RunningBootKept,
	"WipeBeginsFromOff":        explorer.RunningBootKept,
	"ServedInMaintenance":      explorer.HandsOff,
	"NeverWipeByReset":         explorer.NeverWipeRetained,
}

var rules = func() map[explorer.Rule]bool {
	all := map[explorer.Rule]bool{}
	for _, r := range explorer.Rules {
		all[r] = true
	}
	return all
}()

// safetyRules are those of the vocabulary.
func safetyRules(t *testing.T) []explorer.Rule {
	t.Helper()
	words := policies.Vocabulary()
	var all []explorer.Rule
	for _, requirements := range words.Enter {
		for _, r := range requirements {
			all = append(all, explorer.Rule(r.Rule))
		}
	}
	for _, requirements := range words.Leave {
		for _, r := range requirements {
			all = append(all, explorer.Rule(r.Rule))
		}
	}
	for _, requirements := range words.Clear {
		for _, r := range requirements {
			all = append(all, explorer.Rule(r.Rule))
		}
	}
	for _, requirements := range words.Set {
		for _, r := range requirements {
			all = append(all, explorer.Rule(r.Rule))
		}
	}
	for _, e := range words.Effects {
		for _, r := range slices.Concat(e.Requires, e.Stays) {
			all = append(all, explorer.Rule(r.Rule))
		}
	}
	return all
}
