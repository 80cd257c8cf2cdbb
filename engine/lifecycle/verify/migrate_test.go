// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAMigrationIsHeldToWhatItsTargetAsks(t *testing.T) {
	l := compiled(t, "    - {rule: Repaired, to: Inspect, when: repairAsked}\n", "    - {rule: Repaired, to: Inspect, when: repairAsked}\nmigrate:\n  Offered: Ready\n  Scrap: Retired\n")
	want := `lifecycle.yaml:43:12: error: Migrated: a server left in Offered can enter Ready where NeverOfferDirty forbids it, and is halted: ` +
		`a dirty server is never offered [safety-move]` + "\n  in Offered with {lifecycle.marks: [\"Dirty\"]}\n  {halts: SafetyRule, rule: Migrated}\n"
	if diff := cmp.Diff(want, said(Check(l))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAStateFromWhichNothingLeadsByItselfIsNotDropped(t *testing.T) {
	l := compiled(t, "    - {rule: Repaired, to: Inspect, when: repairAsked}\n", "    - {rule: Repaired, to: Inspect, when: repairAsked}\nmigrate:\n  Lent: Retired\n")
	want := `lifecycle.yaml:43:9: error: Migrated: a server left in Lent can be led to Retired where OnlyClaimed forbids it, and is halted: ` +
		`a server on loan comes back only with a claim (define Lent in this lifecycle too, whatever it migrates to) [safety-move]` + "\n"
	if diff := cmp.Diff(want, Check(l).Diagnostics().Err().Error()+"\n"); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
