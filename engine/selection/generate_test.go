// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// author writes policies at random. It knows the rules of Rego well enough that most of them compile.
type author struct {
	r     *rapid.T
	rules int
}

func (a author) of(words ...string) string { return rapid.SampledFrom(words).Draw(a.r, "choice") }

func (a author) number(depth int) string {
	if depth == 0 {
		return a.of("0", "1", "2", "-3", "86400", "1.5", "2.0", "input.candidate.cores", "input.candidate.gpus", "input.candidate.memoryGiB",
			"input.candidate.availableSince", "input.candidate.diskBytes.nvme", "input.claim.priority", "input.fleet.now", "input.fleet.total")
	}
	switch rapid.IntRange(0, 7).Draw(a.r, "number") {
	case 0, 1:
		return fmt.Sprintf("(%s %s %s)", a.number(depth-1), a.of("+", "-", "*", "/", "%"), a.number(depth-1))
	case 2:
		return fmt.Sprintf("f(%s, %s)", a.number(depth-1), a.text(depth-1))
	case 3:
		return fmt.Sprintf("object.get(input.fleet.%s, %s, %s)", a.of("totalByRack", "claimedByRack"), a.text(depth-1), a.number(0))
	case 4:
		return fmt.Sprintf("input.fleet.%s[%s]", a.of("totalByRack", "claimedByZone"), a.text(0))
	case 5:
		return fmt.Sprintf("%s(%s)", a.of("abs", "round", "floor"), a.number(depth-1))
	case 6:
		if a.rules > 0 {
			return fmt.Sprintf("n%d", rapid.IntRange(0, a.rules-1).Draw(a.r, "rule"))
		}
	}
	return a.number(0)
}

func (a author) text(depth int) string {
	if depth == 0 {
		return a.of(`""`, `"a"`, `"x"`, `"r1"`, "input.candidate.rack", "input.candidate.zone", "input.candidate.model", "input.claim.image",
			"input.candidate.labels.a", `input.candidate.labels[""]`, "input.claim.labels.x", "input.claim.namespace")
	}
	switch rapid.IntRange(0, 4).Draw(a.r, "text") {
	case 0:
		return fmt.Sprintf("object.get(input.candidate.labels, %s, %s)", a.text(depth-1), a.text(0))
	case 1:
		return fmt.Sprintf("concat(%s, [%s, %s])", a.text(0), a.text(depth-1), a.text(0))
	case 2:
		return fmt.Sprintf("input.candidate.labels[%s]", a.text(0))
	case 3:
		return fmt.Sprintf("sprintf(%s, [%s, %s])", a.of(`"%v-%s"`, `"%d%%%v"`, `"x"`), a.number(depth-1), a.text(0))
	}
	return a.text(0)
}

func (a author) condition(depth int) string {
	var c string
	switch rapid.IntRange(0, 8).Draw(a.r, "condition") {
	case 0, 1:
		c = fmt.Sprintf("%s %s %s", a.number(depth), a.of("==", "!=", "<", "<=", ">", ">="), a.number(depth))
	case 2, 3:
		c = fmt.Sprintf("%s %s %s", a.text(depth), a.of("==", "!=", "<"), a.text(depth))
	case 4:
		c = fmt.Sprintf("%s in %s", a.text(0), a.of(`{"a", "r1"}`, `["x", "", 1]`, `{"k": "a"}`, "input.candidate.labels"))
	case 5:
		c = fmt.Sprintf("%s(%s, %s)", a.of("startswith", "contains", "endswith"), a.text(depth), a.text(0))
	case 6:
		c = a.text(0)
	case 7:
		return fmt.Sprintf("some v%d in %s\n\tv%d.key == %s", depth, "input.candidate.taints", depth, a.text(0))
	default:
		c = a.number(depth)
	}
	return a.of("", "", "not ") + c
}

func (a author) body() string {
	var all []string
	for i := range rapid.IntRange(1, 3).Draw(a.r, "conditions") {
		all = append(all, "\t"+strings.ReplaceAll(a.condition(i%2), "v0", fmt.Sprintf("v%d", i+5)))
	}
	return "{\n" + strings.Join(all, "\n") + "\n}"
}

// sum adds helper rules up.
func (a author) sum(depth int) string {
	switch choice := rapid.IntRange(0, 4).Draw(a.r, "sum"); {
	case depth > 0 && choice < 2:
		return fmt.Sprintf("(%s %s %s)", a.sum(depth-1), a.of("+", "-"), a.sum(depth-1))
	case depth > 0 && choice == 2:
		return fmt.Sprintf("(%s * %s)", a.of("0", "3", "-20"), a.sum(depth-1))
	case choice == 3:
		return a.of("1", "-7", "2.5")
	}
	return fmt.Sprintf("n%d", rapid.IntRange(0, a.rules-1).Draw(a.r, "summand"))
}

// policy writes helper rules, a function, and the three rules that metalaw asks for.
func (a author) policy() string {
	var b strings.Builder
	helpers := rapid.IntRange(0, 4).Draw(a.r, "helpers")
	fmt.Fprintf(&b, "f(a, b) := a if b == %s\n", a.text(0))
	fmt.Fprintf(&b, "f(a, b) := a + %s if %s\n", a.number(0), "b != \"a\"")
	if a.of("yes", "no") == "yes" {
		fmt.Fprintf(&b, "default f(_, _) := %d\n", rapid.IntRange(0, 3).Draw(a.r, "default"))
	}
	for a.rules = range helpers {
		if a.of("yes", "no") == "yes" {
			fmt.Fprintf(&b, "default n%d := %d\n", a.rules, rapid.IntRange(-2, 2).Draw(a.r, "default"))
		}
		for range rapid.IntRange(1, 2).Draw(a.r, "clauses") {
			fmt.Fprintf(&b, "n%d := %s if %s", a.rules, a.number(1), a.body())
			for range rapid.IntRange(0, 2).Draw(a.r, "branches") {
				fmt.Fprintf(&b, " else := %s if %s", a.number(1), a.body())
			}
			b.WriteString("\n")
		}
	}
	a.rules = helpers
	for range rapid.IntRange(1, 2).Draw(a.r, "allows") {
		fmt.Fprintf(&b, "allow if %s\n", a.body())
	}
	for range rapid.IntRange(0, 3).Draw(a.r, "rejects") {
		fmt.Fprintf(&b, "reject contains {\"code\": %q, \"message\": %s} if %s\n", a.of("a", "b", "not-allowed"),
			a.of(`"words"`, `sprintf("%s of %d", [input.candidate.name, input.candidate.cores])`, a.text(1)), a.body())
	}
	if helpers > 0 && a.of("yes", "no") == "yes" {
		fmt.Fprintf(&b, "score := %s\n", a.sum(2))
	} else {
		fmt.Fprintf(&b, "score := %s if %s\n", a.number(2), a.body())
	}
	return b.String()
}

// checkGenerated holds one policy against the interpreter.
func checkGenerated(r *rapid.T) (native bool) {
	policy, _ := Compile(rego(author{r: r}.policy()))
	if policy == nil {
		return false // the types do not fit
	}
	for range 3 {
		claim, fleet := drawClaim(r)
		alike(r, policy, claim, drawCandidates(r), fleet)
	}
	return policy.IsNative()
}

func TestGeneratedPoliciesAreEvaluatedAsByTheInterpreter(t *testing.T) {
	native, all := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		all++
		if checkGenerated(r) {
			native++
		}
	})
	if native*4 < all {
		t.Errorf("only %d of %d policies are native: the author writes too few of interest", native, all)
	}
}

func FuzzGeneratedPolicies(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(r *rapid.T) { checkGenerated(r) }))
}
