// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/spelling"
)

// Compile reads lifecycle.yaml. It returns nil and all problems with their places when the file is not usable. The
// error is for mistakes in the vocabulary itself, which no author can mend.
func Compile(fileName string, data []byte, v *engine.Vocabulary) (*Lifecycle, diag.List, error) {
	g, err := languageOf(v)
	if err != nil {
		return nil, nil, err
	}
	c := &compiler{language: g, file: yamlpos.Parse(fileName, data),
		atoms: map[string]int{}, rules: map[string]int{}, states: map[string]bool{}, marks: map[string]bool{}}
	if c.file.Root == nil {
		return nil, c.file.Found, nil
	}
	l := c.compile(parseSpec(c.file))
	if c.file.Found.HasErrors() {
		return nil, c.file.Found, nil
	}
	return l, c.file.Found, nil
}

type compiler struct {
	*language
	file       *yamlpos.File
	atoms      map[string]int
	list       []*Expression
	rules      map[string]int
	states     map[string]bool
	marks      map[string]bool
	interrupts []interrupt
	// misnamed are the definitions that no guard can name.
	misnamed []string
}

func (c *compiler) compile(s spec) *Lifecycle {
	l := &Lifecycle{language: c.language, states: map[engine.State]*State{},
		ast: AST{File: c.file.Name, Vocabulary: c.vocabulary, Safety: c.safety, Initial: engine.State(s.initial), InitialAt: placeOf(s.initialAt),
			Migrate: map[engine.State]engine.State{}, MigrateAt: map[engine.State]Place{}}}
	c.collectNames(s.states)
	c.checkInitial(s)
	c.compileAtoms(s.define)
	for _, i := range s.interrupts {
		c.interrupts = append(c.interrupts, interrupt{exitSpec: i})
	}
	for _, st := range s.states {
		compiled := c.compileState(st)
		l.states[compiled.Name] = compiled
		l.ast.States = append(l.ast.States, compiled)
	}
	c.compileSayings(l, s.says)
	c.compileInvariants(l, s.invariants)
	c.compileMigrations(l, s.migrate)
	l.ast.Definitions = c.list
	return l
}

func (c *compiler) compileSayings(l *Lifecycle, all []saying) {
	l.says = make(map[string]string, len(all))
	for _, s := range all {
		if _, ok := c.rules[s.rule]; !ok {
			c.file.Errorf(s.at, "rule-unknown", s.rule, "name the rule of an exit or of an interrupt", "says: there is no rule %q", s.rule)
		}
		l.says[s.rule] = s.text
	}
}

func (c *compiler) checkInitial(s spec) {
	switch {
	case s.initial == "":
		c.file.Errorf(c.file.Root, "initial-missing", "", "add initial: with the state in which a new server starts",
			"the lifecycle has no initial state")
	case !c.states[s.initial]:
		c.file.Errorf(s.initialAt, "state-unknown", "", c.stateHint(s.initial), "there is no state %q", s.initial)
	}
	if len(s.states) == 0 {
		c.file.Errorf(c.file.Root, "states-missing", "", "add states:", "the lifecycle has no states")
	}
}

// stateHint names the state that was meant, or all that there are.
func (c *compiler) stateHint(meant string) string {
	names := slices.Sorted(maps.Keys(c.states))
	if len(names) == 0 {
		return "define it under states"
	}
	return spelling.Hint(meant, names, "states: "+strings.Join(names, ", "))
}

// itemAt is one item of a list; the list itself where it has none.
func itemAt(list *yaml.Node, i int) *yaml.Node {
	if list != nil && i < len(list.Content) {
		return list.Content[i]
	}
	return list
}

// interrupt is compiled at the first state to which it applies, and is the same exit of all of them.
type interrupt struct {
	exitSpec
	exit *Exit
}

// interruptsOf lists those that apply in a state.
func (c *compiler) interruptsOf(stateName string) []*Exit {
	var all []*Exit
	for k := range c.interrupts {
		i := &c.interrupts[k]
		if slices.Contains(i.except, stateName) || i.to == stateName {
			continue
		}
		if i.exit == nil {
			i.exit = c.compileExit(i.exitSpec, true)
		}
		all = append(all, i.exit)
	}
	return all
}

func (c *compiler) compileState(s stateSpec) *State {
	st := &State{Name: engine.State(s.name), At: placeOf(s.key), Means: s.means, Stable: s.stable, Marks: s.marks, Operations: s.operations}
	if s.means == "" && !s.flawed {
		c.file.Errorf(s.key, "means-missing", s.name, "write one sentence: it becomes the condition's message", "the state has no means")
	}
	c.checkStateWords(st, s)
	st.Ensure = c.compileEnsures(s)
	if len(st.Ensure) <= mostShared {
		st.shared = make([]atomic.Pointer[[]engine.Effect], 1<<len(st.Ensure))
	}
	st.Stays = c.safety.forStaying(st.Ensure)
	st.Exits = c.interruptsOf(s.name)
	unconditional := false
	for _, x := range s.exits {
		compiled := c.compileExit(x, false)
		// A rule without a guard is reported as that; with after: it would be the deadline.
		unconditional = unconditional || compiled.When == nil && x.when == nil || x.flawed
		st.Exits = append(st.Exits, compiled)
	}
	if !s.stable && !unconditional && !s.flawed {
		c.file.Errorf(s.key, "deadline-missing", s.name, "add an exit with after: and no when:, or mark the state stable: true",
			"a server may wait here for ever: the state is not stable and has no unconditional deadline")
	}
	return st
}

// checkStateWords checks the marks that a state sets and the operations that it accepts.
func (c *compiler) checkStateWords(st *State, s stateSpec) {
	for i, m := range s.marks {
		if slices.Contains(c.vocabulary.Kept, m) {
			c.kept(itemAt(s.marksAt, i), s.name, "a state cannot set", m)
		} else if _, earned := c.vocabulary.Set[m]; earned {
			c.file.Errorf(itemAt(s.marksAt, i), "mark-earned", s.name, "take it out; the engine sets it with an effect that earns it",
				"a state cannot set the mark %q: entering a state proves nothing about a machine", m)
		}
	}
	for i, op := range s.operations {
		st.OperationsAt = append(st.OperationsAt, placeOf(itemAt(s.opsAt, i)))
		if slices.Contains(s.operations[:i], op) {
			c.file.Warnf(itemAt(s.opsAt, i), "operation-duplicate", s.name, "take one of them out", "the state lists the operation %q twice", op)
			continue
		}
		if !slices.Contains(c.vocabulary.Operations, op) {
			c.file.Errorf(itemAt(s.opsAt, i), "operation-unknown", s.name, "operations: "+strings.Join(c.vocabulary.Operations, ", "),
				"there is no operation %q", op)
		}
	}
}

func (c *compiler) compileExit(s exitSpec, interrupt bool) *Exit {
	e := &Exit{Rule: s.rule, At: placeOf(s.at), To: engine.State(s.to), Retry: s.retry, Clears: s.clears, Interrupt: interrupt}
	c.checkExit(s)
	e.When = c.condition(s.rule, s.when, nil)
	if s.after != nil {
		e.After = c.deadline(s.rule, s.after)
	}
	if s.when == nil && s.after == nil && !s.flawed {
		c.file.Errorf(s.at, "exit-unguarded", s.rule, "add when: or after:", "the rule %s has neither when nor after: it would fire at once", s.rule)
	}
	e.groups = c.groups(e.When)
	return e
}

func (c *compiler) checkExit(s exitSpec) {
	if first, ok := c.rules[s.rule]; ok {
		c.file.Errorf(s.at, "rule-duplicate", s.rule, "rule names are metric labels and condition reasons: each must be unique",
			"the rule %s exists already in line %d", s.rule, first)
		return
	}
	c.rules[s.rule] = s.at.Line
	if !ruleName.MatchString(s.rule) {
		c.file.Errorf(s.at, "rule-name", s.rule, "write one word in upper camel case, for example ProbeReported",
			"%q cannot be a rule's name", s.rule)
	} else if s.rule == RuleMigrated || slices.Contains(c.vocabulary.Moves, s.rule) {
		c.file.Errorf(s.at, "rule-name", s.rule, "name it by what has happened when it fires, for example ProbeReported",
			"moves that metalaw makes by itself have this name, and no rule of a bundle can")
	}
	switch {
	case s.to == "" && s.flawed:
		// what is wrong with it is reported
	case s.to == "":
		c.file.Errorf(s.at, "exit-nowhere", s.rule, "add to: with a state", "the rule %s leads nowhere", s.rule)
	case !c.states[s.to]:
		c.file.Errorf(s.toAt, "state-unknown", s.rule, c.stateHint(s.to), "there is no state %q", s.to)
	}
	for i, name := range s.except {
		if !c.states[name] {
			c.file.Errorf(itemAt(s.excAt, i), "state-unknown", s.rule, c.stateHint(name), "there is no state %q", name)
		}
	}
	for i, m := range s.clears {
		if slices.Contains(c.vocabulary.Kept, m) {
			c.kept(itemAt(s.clrAt, i), s.rule, "a rule cannot clear", m)
		} else if !c.marks[m] {
			c.file.Errorf(itemAt(s.clrAt, i), "mark-unknown", s.rule, markHint(m, c.marks), "no state sets the mark %q", m)
		}
	}
}

func (c *compiler) kept(at *yaml.Node, rule, cannot, mark string) {
	c.file.Errorf(at, "mark-kept", rule, "take it out; it comes and goes with what the engine sees of the machine",
		"%s the mark %q: the engine keeps it", cannot, mark)
}

// minDeadline is the shortest deadline. Two states at rest that leave each other by shorter ones would keep the fleet's API server
// busy with nothing else.
const minDeadline = time.Second

func (c *compiler) deadline(rule string, node *yaml.Node) *Deadline {
	length, err := time.ParseDuration(node.Value)
	fact, named := c.vocabulary.Index(node.Value)
	switch {
	case err == nil && length < minDeadline:
		c.file.Errorf(node, "after-range", rule, "write a duration of 1s or more, or ask with when: for what the rule waits for",
			"after is %s, and a deadline is at least %s", length, minDeadline)
	case err == nil:
		// a length of time
	case yamlpos.TooLong(node.Value):
		c.file.Errorf(node, "after-range", rule, "write a shorter duration such as 15m; a state in which servers may wait for ever is stable: true",
			"after is %s, and a deadline is at most %s", node.Value, yamlpos.Longest)
	case named && c.vocabulary.Facts[fact].Kind == engine.Duration:
		return &Deadline{Fact: fact, At: placeOf(node)}
	case !c.file.Told(node):
		c.file.Errorf(node, "after-type", rule, "write a duration such as 15m, or the name of a duration fact such as wipe.budget",
			"%q is neither a duration nor a duration fact", node.Value)
	}
	return &Deadline{Literal: length, Fact: -1, At: placeOf(node)}
}

// groups lists the fact groups behind a guard, so that the shell knows what a move relies on.
func (c *compiler) groups(g *Condition) []string {
	var groups []string
	for _, a := range g.Atoms() {
		for _, f := range c.list[a].Facts {
			group, _ := splitFact(c.vocabulary.Facts[f].Name)
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

func (c *compiler) compileInvariants(l *Lifecycle, all []invariantSpec) {
	effects := map[string]bool{}
	for _, e := range c.vocabulary.Effects {
		effects[e.Name] = true
	}
	for _, i := range all {
		if i.rule == "" || i.must == nil {
			c.file.Errorf(i.at, "invariant-form", i.rule, "write {rule: Name, must: condition}", "an invariant needs rule and must")
			continue
		}
		if must := c.condition(i.rule, i.must, effects); must != nil {
			l.ast.Invariants = append(l.ast.Invariants, &Invariant{Rule: i.rule, At: placeOf(i.at), Must: must})
		}
	}
}

func (c *compiler) compileMigrations(l *Lifecycle, all []migration) {
	for _, m := range all {
		if why, hint := nameFlaw(m.from, "BurnIn"); hint != "" {
			c.file.Warnf(m.key, "migrate-name", "migrate", "write the name of the former state, or take the line out",
				"%q cannot be a state's name%s, so that this migrates no server", m.from, why)
		}
		switch {
		case !c.states[m.to]:
			c.file.Errorf(m.at, "state-unknown", "migrate", c.stateHint(m.to), "there is no state %q", m.to)
		case c.states[m.from]:
			c.file.Errorf(m.at, "migrate-needless", "migrate", "remove the line", "the state %q is still defined", m.from)
		default:
			l.ast.Migrate[engine.State(m.from)] = engine.State(m.to)
			l.ast.MigrateAt[engine.State(m.from)] = placeOf(m.at)
		}
	}
}
