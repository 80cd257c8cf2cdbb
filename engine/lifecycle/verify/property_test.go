// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// parts are what random definitions are made of.
var parts = []string{
	`bmc.power == "On"`, `bmc.power != "Off"`, `bmc.power in ["On", "Unknown"]`, `claim.bound`, `!bmc.known`,
	`claim.bound == bmc.known`, `hardware.cores > 60`, `hardware.cores <= hardware.disks`, `60 < hardware.disks`, `hardware.cores in [59, 61]`,
	`lifecycle.retries >= 2`, `lifecycle.retries == 0`, `lifecycle.age >= duration("5m")`, `wipe.budget > duration("1h")`,
	`marked("Dirty")`, `marked("Managed")`, `probe.entry == lifecycle.entry && probe.good`, `lifecycle.state == "A"`,
	`hardware.model == "a"`, `hardware.model != ""`, `(operation.name == "release" ? claim.bound : bmc.known)`, `operation.name == "repair"`,
}

// opaqueParts are not taken apart.
var opaqueParts = []string{`hardware.cores / hardware.disks > 0`, `hardware.model.startsWith("a")`, `size(lifecycle.marks) == 1`, `hardware.cores + 1 > 60`}

// author writes random lifecycles and makes up random facts.
type author struct{ *rand.Rand }

func (a author) one(of []string) string { return of[a.Intn(len(of))] }

func (a author) combined(of []string, depth int) string {
	if depth == 0 {
		return a.one(of)
	}
	left, right := a.combined(of, depth-1), a.combined(of, depth-1)
	switch a.Intn(5) {
	case 0:
		return "(" + left + " && " + right + ")"
	case 1:
		return "(" + left + " || " + right + ")"
	case 2:
		return "!(" + left + ")"
	default:
		return left
	}
}

var names = []string{"d0", "d1", "d2", "d3", "d4"}

func (a author) lifecycle(of []string) string {
	var b strings.Builder
	b.WriteString("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Lifecycle\ninitial: A\ndefine:\n")
	for _, n := range names {
		fmt.Fprintf(&b, "  %s: '%s'\n", n, a.combined(of, 2))
	}
	fmt.Fprintf(&b, "interrupts:\n- {rule: Interrupt, to: Ready, when: '%s', except: [B]}\nstates:\n", a.combined(names, 2))
	states := []string{"A", "B", "Ready"}
	for i, s := range states {
		fmt.Fprintf(&b, "  %s:\n    means: It is %s.\n    stable: %t\n    operations: [%s]\n", s, s, i != 0, a.one([]string{"release", "repair", ""}))
		if a.Intn(3) == 0 {
			b.WriteString("    marks: [Dirty]\n")
		}
		b.WriteString("    ensure:\n")
		for _, effect := range []string{"PowerOn", "BootWipe", "PowerOff", "BootImage"} {
			fmt.Fprintf(&b, "    - {do: %s, when: '%s'}\n", effect, a.combined(names, 2))
		}
		b.WriteString("    exits:\n")
		for x := range 3 {
			fmt.Fprintf(&b, "    - {rule: Exit%s%d, to: %s, when: '%s'%s}\n", s, x, a.one(states), a.combined(names, 2),
				a.one([]string{"", "", ", retry: true", ", clears: [Dirty]", ", after: 10m", ", after: wipe.budget"}))
		}
		if i == 0 {
			b.WriteString("    - {rule: Last, to: B, after: 20m}\n")
		}
	}
	fmt.Fprintf(&b, "invariants:\n- {rule: Held, must: '%s || !ensuring(\"BootImage\")'}\n- {rule: Kept, must: \"!acting() || state != 'B' || %s\"}\n",
		a.combined(names, 1), a.combined(names, 1))
	return b.String()
}

// facts are random, near to what definitions compare them with; not all of them can occur.
func (a author) facts(state engine.State) engine.Values {
	w := words()
	v := w.Quiet()
	set := func(name string, value engine.Value) {
		i, ok := w.Index(name)
		if !ok {
			panic(name)
		}
		v[i] = value
	}
	number := func(of ...int64) int64 { return of[a.Intn(len(of))] }
	set("lifecycle.state", engine.StringValue(string(state)))
	set("lifecycle.entry", engine.IntValue(number(1, 2)))
	set("lifecycle.age", engine.AgeValue(time.Duration(number(0, 1, int64(5*time.Minute), int64(10*time.Minute), int64(time.Hour), int64(3*time.Hour)))))
	set("lifecycle.retries", engine.IntValue(number(0, 1, 2, 3)))
	set("lifecycle.marks", engine.SetValue([][]string{nil, {"Dirty"}, {"Managed"}, {"Dirty", "Managed"}}[a.Intn(4)]))
	set("bmc.power", engine.EnumValue(a.one([]string{"On", "Off", "Unknown"})))
	set("bmc.known", engine.BoolValue(a.Intn(4) > 0))
	set("claim.bound", engine.BoolValue(a.Intn(2) > 0))
	set("wipe.budget", engine.DurationValue(time.Duration(number(1, int64(time.Hour), int64(2*time.Hour)))))
	set("hardware.cores", engine.IntValue(number(58, 59, 60, 61, 62)))
	set("hardware.disks", engine.IntValue(number(0, 59, 60, 61, 62)))
	set("hardware.model", engine.StringValue(a.one([]string{"", "a", "ab", "b"})))
	set("probe.entry", engine.IntValue(number(-1, 1, 2)))
	set("probe.good", engine.BoolValue(a.Intn(2) > 0))
	set("operation.name", engine.EnumValue(a.one([]string{"None", "repair", "release"})))
	return v
}

// assignmentOf is the answers to all questions on the facts.
func assignmentOf(e *encoder, v engine.Values) []bool {
	assignment := make([]bool, len(e.weights))
	for _, p := range e.primitives {
		switch p.kind {
		case isWord:
		case isOpaque:
			value, err := evaluated(e, p.word, v)
			assignment[p.variable] = err == nil && value
			if p.failure >= 0 {
				assignment[p.failure] = err != nil
			}
		default:
			assignment[p.variable] = p.holds(v) != p.flipped
		}
	}
	for fact, vocables := range e.vocables {
		word := v[fact].Text()
		if f := e.words.Facts[fact]; f.Kind == engine.String && word != f.Quiet.Text() &&
			!slices.ContainsFunc(vocables, func(w vocable) bool { return w.word == word }) {
			word = otherText
		}
		for _, w := range vocables {
			assignment[w.variable] = w.word == word
		}
	}
	return assignment
}

// foretold is what the diagrams say that a decision will be.
func foretold(c *model, v *view, assignment []bool) string {
	for _, w := range v.exits {
		switch {
		case c.Holds(w.errs, assignment):
			return "GuardError " + w.Rule
		case c.Holds(w.fires, assignment) && !c.Holds(w.taken, assignment):
			return "SafetyRule " + w.Rule
		case c.Holds(w.fires, assignment):
			return "fires " + w.Rule
		}
	}
	for _, s := range v.stays {
		if c.Holds(s.halted, assignment) {
			return "SafetyRule " + s.Effect.Name
		}
	}
	for _, w := range v.effects {
		switch {
		case c.Holds(w.err, assignment):
			return "GuardError " + w.Effect.Name
		case c.Holds(w.halted, assignment):
			return "SafetyRule " + w.Effect.Name
		}
	}
	for i, on := range v.breaches {
		if c.Holds(on, assignment) {
			return "InvariantViolated " + c.ast.Invariants[i].Rule
		}
	}
	return "stays"
}

func told(d engine.Decision) string {
	switch {
	case d.Halt != nil:
		return string(d.Halt.Cause) + " " + d.Halt.Rule
	case d.Rule != "":
		return "fires " + d.Rule
	default:
		return "stays"
	}
}

// TestDiagramsForetellEveryDecision compares the verifier's view of random lifecycles with what they decide on random facts.
func TestDiagramsForetellEveryDecision(t *testing.T) {
	a := author{rand.New(rand.NewSource(7))}
	outcomes := map[string]int{}
	for n := range 150 {
		of := parts
		if n%3 == 0 {
			of = slices.Concat(parts, opaqueParts)
		}
		text := a.lifecycle(of)
		l := compiledText(t, text)
		c := viewed(t, l)
		for range 60 {
			v := c.order[a.Intn(len(c.order))]
			facts := a.facts(v.Name)
			if !possible(c, facts) {
				continue
			}
			assignment := assignmentOf(c.encoder, facts)
			if !c.Holds(c.domain, assignment) {
				t.Fatalf("facts that can occur are taken for such that cannot: %v\n%s", facts, text)
			}
			want := told(l.Decide(facts))
			outcomes[strings.Fields(want)[0]]++
			if got := foretold(c, v, assignment); got != want {
				t.Fatalf("in %s the diagrams say %q, and the lifecycle %q\n%v\n%s", v.Name, got, want, facts, text)
			}
		}
	}
	for _, kind := range []string{"fires", "stays", "SafetyRule", "GuardError", "InvariantViolated"} {
		if outcomes[kind] < 20 {
			t.Errorf("only %d decisions were %s: %v", outcomes[kind], kind, outcomes)
		}
	}
}

// TestEveryAnswerThatCanOccurHasFacts walks from answers to facts and back.
func TestEveryAnswerThatCanOccurHasFacts(t *testing.T) {
	a := author{rand.New(rand.NewSource(8))}
	for range 60 {
		text := a.lifecycle(parts)
		c := viewed(t, compiledText(t, text))
		for range 20 {
			f := c.domain
			for v := range c.weights { // draw an assignment: each variable at random where it is free
				x := c.Var(v)
				if a.Intn(2) == 0 {
					x = c.Not(x)
				}
				if both := c.And(f, x); both != bdd.False {
					f = both
				}
			}
			assignment, _ := c.Cheapest(f, c.weights)
			facts, exact := c.facts(f, assignment, "A")
			if !exact || !possible(c, facts) {
				t.Fatalf("no facts have the answers %v; the nearest are %v\n%s", assignment, facts, text)
			}
			if got := assignmentOf(c.encoder, facts); !slices.Equal(got, assignment) {
				t.Fatalf("the facts %v have the answers %v, and were made for %v\n%s", facts, got, assignment, text)
			}
		}
	}
}

// TestEveryFindingWithFactsIsConfirmed relies on the lifecycle itself for whether a finding is true.
func TestEveryFindingWithFactsIsConfirmed(t *testing.T) {
	a := author{rand.New(rand.NewSource(9))}
	codes := map[string]int{}
	for range 120 {
		text := a.lifecycle(parts)
		r := Check(compiledText(t, text))
		for _, f := range r.Findings {
			codes[f.Code]++
			if f.Counterexample != nil && !f.Counterexample.Confirmed {
				t.Errorf("%s\n%s\n%s", f.Diagnostic, f.Counterexample, text)
			}
		}
	}
	for _, code := range []string{CodeSafetyEffect, CodeSafetyMove, CodeSafetyStay, CodeInvariant, CodeLivelock, CodeNeverFires, CodeOrderDecides, CodeAlwaysTrue} {
		if codes[code] == 0 {
			t.Errorf("no random lifecycle was found to be %s: %v", code, codes)
		}
	}
}

// TestNoLivelockIsMissed lets random lifecycles move on random facts that stay as they are.
func TestNoLivelockIsMissed(t *testing.T) {
	a := author{rand.New(rand.NewSource(10))}
	spun := 0
	for range 150 {
		text := a.lifecycle(parts)
		l := compiledText(t, text)
		c := viewed(t, l)
		var cycle string
		for range 80 {
			facts := a.facts(c.order[a.Intn(len(c.order))].Name)
			if !possible(c, facts) {
				continue
			}
			if cycle = spins(l, facts); cycle != "" {
				break
			}
		}
		if cycle == "" {
			continue
		}
		spun++
		if r := Check(l); !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Code == CodeLivelock }) {
			t.Fatalf("moves follow each other without end (%s), and nothing is said of it\n%s", cycle, text)
		}
	}
	if spun < 10 {
		t.Errorf("only %d random lifecycles spin", spun)
	}
}

// spins moves a machine while nothing outside changes, and says how it goes round; empty where it comes to rest.
func spins(l *lifecycle.Lifecycle, v engine.Values) string {
	w := words()
	at := func(name string) int { i, _ := w.Index(name); return i }
	var rules []string
	for range 60 {
		d := l.Decide(v)
		if !d.Moves() {
			return ""
		}
		rules = append(rules, d.Rule)
		without := slices.Clone(v)
		without[at("operation.name")] = engine.EnumValue("None")
		if l.Decide(without).Rule != d.Rule || !l.Accepts(d.To, v[at("operation.name")].Text()) {
			v = without
		}
		var marks []string
		for _, m := range append(slices.DeleteFunc(slices.Clone(v[at("lifecycle.marks")].Set()), func(m string) bool { return slices.Contains(d.Clears, m) }), d.Marks...) {
			if !slices.Contains(marks, m) {
				marks = append(marks, m)
			}
		}
		retries := v[at("lifecycle.retries")].Int()
		switch {
		case d.ResetRetries || d.Stable:
			retries = 0
		case d.Retry:
			retries++
		}
		v = slices.Clone(v)
		v[at("lifecycle.marks")] = engine.SetValue(marks)
		v[at("lifecycle.retries")] = engine.IntValue(retries)
		v[at("lifecycle.state")] = engine.StringValue(string(d.To))
		v[at("lifecycle.age")] = engine.AgeValue(0)
		v[at("lifecycle.entry")] = engine.IntValue(v[at("lifecycle.entry")].Int() + 10)
	}
	return strings.Join(rules[40:], " ")
}

func compiledText(t testing.TB, text string) *lifecycle.Lifecycle {
	t.Helper()
	l, found, err := lifecycle.Compile("lifecycle.yaml", []byte(text), words())
	if err != nil {
		t.Fatal(err)
	}
	if l == nil {
		t.Fatalf("%v\n%s", found.Err(), text)
	}
	return l
}

// viewed is a lifecycle before anything was looked for.
func viewed(_ testing.TB, l *lifecycle.Lifecycle) *model { return newModel(l, maxNodes, nil) }

func possible(c *model, v engine.Values) bool {
	for _, x := range c.safety.Axioms {
		if holds, err := c.lifecycle.Evaluate(x, v); err != nil || !holds {
			return false
		}
	}
	return true
}

// evaluated asks CEL itself.
func evaluated(e *encoder, source string, v engine.Values) (bool, error) {
	x, ok := expressions[source]
	if !ok {
		var err error
		if x, err = e.lifecycle.Compile("test", source); err != nil {
			panic(err)
		}
		expressions[source] = x
	}
	return e.lifecycle.Evaluate(x, v)
}

// expressions are passed for every lifecycle: they know the vocabulary only.
var expressions = map[string]*lifecycle.Expression{}
