// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strings"
	"testing"
)

func TestMovesWithoutEndAreFoundThroughWhatIsNotTakenApart(t *testing.T) {
	for name, rewrite := range map[string][]string{
		"a function of the state": {
			"repairAsked: operation.name == \"repair\"", "free: lifecycle.state.startsWith(\"Read\")", "when: releaseAsked && !dirty}", "when: free}",
			"{rule: Repaired, to: Inspect, when: repairAsked}", "{rule: Repaired, to: Ready, when: \"!free && !dirty\"}"},
		"a function of the marks": {
			"repairAsked: operation.name == \"repair\"", "seen: sets.contains(lifecycle.marks, [\"Dirty\"])",
			"when: spent && !passed, after: 10m}", "when: \"!seen\"}", "{rule: Repaired, to: Inspect, when: repairAsked}",
			"{rule: Repaired, to: Inspect, when: seen, clears: [Dirty]}", "means: Gone.", "means: Gone.\n    marks: [Dirty]"},
		"arithmetic for which no numbers are found": {
			"repairAsked: operation.name == \"repair\"", "odd: hardware.cores * 7 % 1000 == 693", "when: releaseAsked && !dirty}", "when: odd}",
			"{rule: Repaired, to: Inspect, when: repairAsked}", "{rule: Repaired, to: Ready, when: odd && !dirty}"},
	} {
		t.Run(name, func(t *testing.T) {
			said := said(Check(compiled(t, rewrite...)))
			if !strings.Contains(said, " error: ") || !strings.Contains(said, "[livelock]") {
				t.Errorf("it says %s", said)
			}
		})
	}
}

func TestRetriesThatAreNotCountedAreAnErrorWhereTheyAreAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		compared, with string
	}{
		"a number that is too high": {"lifecycle.retries >= 200", "a number above 100"},
		"another fact":              {"hardware.cores < lifecycle.retries", "hardware.cores"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Check(compiled(t, "lifecycle.retries >= 2", c.compared))
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Code == CodeUndecided })
			if i < 0 {
				t.Fatalf("it says %s", said(r))
			}
			want := "lifecycle.yaml:10:3: error: spent: whether moves can follow each other for ever was not found out: lifecycle.retries is compared with " +
				c.with + " (compare it with a number of at most 100) [verify-undecided]"
			if got := r.Findings[i].String(); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
