// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAMigrationIsHeldToWhatItsTargetAsks(t *testing.T) {
	l := compiled(t, "    - {rule: Mended, to: Test, when: mendAsked}\n", "    - {rule: Mended, to: Test, when: mendAsked}\nmigrate:\n  Window: Shelf\n  Yard: Bin\n")
	want := `lifecycle.yaml:43:11: error: Migrated: a server left in Window can enter Shelf where NoScratchOnShelf forbids it, and is halted: ` +
		`a scratched lamp is never shown [safety-move]` + "\n  in Window with {lifecycle.marks: [\"Scratched\"]}\n  {halts: SafetyRule, rule: Migrated}\n"
	if diff := cmp.Diff(want, said(Check(l))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAStateFromWhichNothingLeadsByItselfIsNotDropped(t *testing.T) {
	l := compiled(t, "    - {rule: Mended, to: Test, when: mendAsked}\n", "    - {rule: Mended, to: Test, when: mendAsked}\nmigrate:\n  Loan: Bin\n")
	want := `lifecycle.yaml:43:9: error: Migrated: a server left in Loan can be led to Bin where OnlySold forbids it, and is halted: ` +
		`a lamp on loan comes back only once it is sold (define Loan in this lifecycle too, whatever it migrates to) [safety-move]` + "\n"
	if diff := cmp.Diff(want, Check(l).Diagnostics().Err().Error()+"\n"); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
