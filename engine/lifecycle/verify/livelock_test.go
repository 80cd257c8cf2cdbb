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
			"mendAsked: operation.name == \"mend\"", "shelved: lifecycle.state.startsWith(\"Shel\")", "when: sellAsked && !scratched}", "when: shelved}",
			"{rule: Mended, to: Test, when: mendAsked}", "{rule: Mended, to: Shelf, when: \"!shelved && !scratched\"}"},
		"a function of the marks": {
			"mendAsked: operation.name == \"mend\"", "seen: sets.contains(lifecycle.marks, [\"Scratched\"])",
			"when: spent && !good, after: 10m}", "when: \"!seen\"}", "{rule: Mended, to: Test, when: mendAsked}",
			"{rule: Mended, to: Test, when: seen, clears: [Scratched]}", "means: Gone.", "means: Gone.\n    marks: [Scratched]"},
		"arithmetic for which no numbers are found": {
			"mendAsked: operation.name == \"mend\"", "odd: lamp.watts * 7 % 1000 == 693", "when: sellAsked && !scratched}", "when: odd}",
			"{rule: Mended, to: Test, when: mendAsked}", "{rule: Mended, to: Shelf, when: odd && !scratched}"},
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
		"another fact":              {"lamp.watts < lifecycle.retries", "lamp.watts"},
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
