// SPDX-License-Identifier: Apache-2.0

package explorer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/explorer"
	"github.com/metalaw/metalaw/test/explorer/mutation"
)

// count is how many mutants of one sort there are, and what was said of them.
type count struct {
	mutants, breaking, refused, equal int
}

// summary counts verdicts by the kind of mutant, and by the rule that is broken.
type summary struct {
	kinds map[string]count
	rules map[explorer.Rule]int
	// found is how many of those that break a rule were refused as well.
	found map[explorer.Rule]int
	total count
	// accepted are those that break NeverRests alone and are not refused, and slipped those of which that is a fault.
	accepted, slipped []string
}

func summed(verdicts []verdict) summary {
	s := summary{kinds: map[string]count{}, rules: map[explorer.Rule]int{}, found: map[explorer.Rule]int{}}
	for _, v := range verdicts {
		c := s.kinds[v.Kind].plus(v)
		s.kinds[v.Kind] = c
		s.total = s.total.plus(v)
		switch words := fmt.Sprintf("%s (%s)", v.Mutant, joined(v.broken)); {
		case v.slips():
			s.slipped = append(s.slipped, words)
		case len(v.broken) > 0 && len(v.codes) == 0:
			s.accepted = append(s.accepted, words)
		}
		for _, r := range v.broken {
			s.rules[r]++
			if len(v.codes) > 0 {
				s.found[r]++
			}
		}
	}
	return s
}

func (c count) plus(v verdict) count {
	c.mutants++
	switch {
	case len(v.broken) > 0:
		c.breaking++
	case v.differs == "":
		c.equal++
	}
	if len(v.codes) > 0 {
		c.refused++
	}
	return c
}

// String is the summary as two Markdown tables.
func (s summary) String() string {
	var b strings.Builder
	b.WriteString("| Change | Mutants | break a rule | are refused | cannot be told from the original |\n|---|---:|---:|---:|---:|\n")
	for _, k := range mutation.Kinds() {
		if c := s.kinds[k]; c.mutants > 0 {
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", k, c.mutants, c.breaking, c.refused, c.equal)
		}
	}
	fmt.Fprintf(&b, "| all | %d | %d | %d | %d |\n", s.total.mutants, s.total.breaking, s.total.refused, s.total.equal)
	b.WriteString("\n| Rule | Mutants that break it | of which are refused |\n|---|---:|---:|\n")
	for _, r := range explorer.Rules {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", r, s.rules[r], s.found[r])
	}
	return b.String()
}

// writeProof writes the summary of a bundle into the folder that PROOF names.
func writeProof(t *testing.T, name string, s summary) {
	t.Helper()
	folder := os.Getenv("PROOF")
	if folder == "" {
		return
	}
	text := fmt.Sprintf("## Bundle `%s`\n\n%s", name, s)
	if len(s.accepted) > 0 {
		text += "\nAccepted, and harmless: " + harmless + "\n\n* " + strings.Join(s.accepted, "\n* ") + "\n"
	}
	if len(s.slipped) > 0 {
		text += "\nNot refused for what they break, which is a fault of the verifier:\n\n* " + strings.Join(s.slipped, "\n* ") + "\n"
	}
	text += unbreakable(t, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// unbreakable lists the safety rules that no change of a bundle can break, and why; empty where there are none.
func unbreakable(t *testing.T, name string) string {
	t.Helper()
	b, _, err := bundle.Compile(shipped(t, name), policies.Vocabulary())
	if err != nil || b == nil {
		t.Fatalf("bundle %s does not compile: %v", name, err)
	}
	text := ""
	for _, rule := range explorer.Rules {
		if why, isMoot := moot(b)[rule]; isMoot {
			text += fmt.Sprintf("* %s: %s\n", rule, why)
		}
	}
	if text == "" {
		return ""
	}
	return "\nNo change can break:\n\n" + text
}

// harmless says why a mutant that breaks NeverRests alone may be accepted.
const harmless = "deadlines lead a server on for ever while what it waits for does not come. Each step is safe, a move or an event tells of it, " +
	"and whether to try for ever is for the author to say."
