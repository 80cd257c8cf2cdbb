// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
	l, err := c.compile(parseSpec(c.file))
	if err != nil {
		return nil, nil, err
	}
	if c.file.Found.HasErrors() {
		return nil, c.file.Found, nil
	}
	return l, c.file.Found, nil
}

type compiler struct {
	*language
	file       *yamlpos.File
	atoms      map[string]int
	list       []*atom
	rules      map[string]int
	states     map[string]bool
	marks      map[string]bool
	interrupts []interrupt
	// misnamed are the definitions that no guard can name.
	misnamed []string
}

func (c *compiler) compile(s spec) (*Lifecycle, error) {
	l := &Lifecycle{file: c.file.Name, language: c.language, vocabulary: c.vocabulary, initial: engine.State(s.initial), safety: c.safety,
		states: map[engine.State]*state{}, migrate: map[engine.State]engine.State{},
		initialAt: placeOf(s.initialAt), migrateAt: map[engine.State]Place{}}
	var err error
	if l.stateFact, err = c.position(c.vocabulary.StateFact); err != nil {
		return nil, err
	}
	if l.ageFact, err = c.position(c.vocabulary.AgeFact); err != nil {
		return nil, err
	}
	if l.marksFact, err = c.position(c.vocabulary.MarksFact); err != nil {
		return nil, err
	}
	c.collectNames(s.states)
	c.checkInitial(s)
	c.compileAtoms(s.define)
	for _, i := range s.interrupts {
		c.interrupts = append(c.interrupts, interrupt{exitSpec: i})
	}
	for _, st := range s.states {
		compiled := c.compileState(st)
		l.states[compiled.name] = compiled
		l.order = append(l.order, compiled.name)
	}
	c.compileSayings(l, s.says)
	c.compileInvariants(l, s.invariants)
	c.compileMigrations(l, s.migrate)
	l.atoms = c.list
	return l, nil
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

func (c *compiler) position(fact string) (int, error) {
	i, ok := c.vocabulary.Index(fact)
	if !ok {
		return 0, fmt.Errorf("vocabulary: there is no fact %q", fact)
	}
	return i, nil
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
	if near := spelling.Nearest(meant, names); near != "" {
		return "did you mean " + near + "?"
	}
	if len(names) == 0 {
		return "define it under states"
	}
	return "states: " + strings.Join(names, ", ")
}

// itemAt is one item of a list; the list itself where it has none.
func itemAt(list *yaml.Node, i int) *yaml.Node {
	if list != nil && i < len(list.Content) {
		return list.Content[i]
	}
	return list
}

func (c *compiler) guard(rule string, node *yaml.Node) *guard {
	if node == nil || c.file.Told(node) {
		return nil
	}
	g := &guardCompiler{file: c.file, env: c.guardEnv, atoms: c.atoms, misnamed: c.misnamed}
	return g.compile(rule, node)
}

// interrupt is compiled at the first state to which it applies, and is the same exit of all of them.
type interrupt struct {
	exitSpec
	exit *exit
}

// interruptsOf lists those that apply in a state.
func (c *compiler) interruptsOf(stateName string) []*exit {
	var all []*exit
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

func (c *compiler) compileState(s stateSpec) *state {
	st := &state{name: engine.State(s.name), at: placeOf(s.key), means: s.means, stable: s.stable, marks: s.marks, operations: s.operations}
	if s.means == "" && !s.flawed {
		c.file.Errorf(s.key, "means-missing", s.name, "write one sentence: it becomes the condition's message", "the state has no means")
	}
	c.checkStateWords(st, s)
	st.ensure = c.compileEnsures(s)
	st.stays = c.safety.forStaying(st.ensure)
	st.exits = c.interruptsOf(s.name)
	unconditional := false
	for _, x := range s.exits {
		compiled := c.compileExit(x, false)
		// A rule without a guard is told as that; with after: it would be the deadline.
		unconditional = unconditional || compiled.when == nil && x.when == nil || x.flawed
		st.exits = append(st.exits, compiled)
	}
	if !s.stable && !unconditional && !s.flawed {
		c.file.Errorf(s.key, "deadline-missing", s.name, "add an exit with after: and no when:, or mark the state stable: true",
			"a server may wait here for ever: the state is not stable and has no unconditional deadline")
	}
	return st
}

// checkStateWords checks the marks that a state sets and the operations that it accepts.
func (c *compiler) checkStateWords(st *state, s stateSpec) {
	for i, m := range s.marks {
		if slices.Contains(c.vocabulary.Kept, m) {
			c.kept(itemAt(s.marksAt, i), s.name, "a state cannot set", m)
		} else if _, earned := c.vocabulary.Set[m]; earned {
			c.file.Errorf(itemAt(s.marksAt, i), "mark-earned", s.name, "take it out; the engine sets it with an effect that earns it",
				"a state cannot set the mark %q: entering a state proves nothing about a machine", m)
		}
	}
	for i, op := range s.operations {
		st.operationsAt = append(st.operationsAt, placeOf(itemAt(s.opsAt, i)))
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

func (c *compiler) compileExit(s exitSpec, interrupt bool) *exit {
	e := &exit{rule: s.rule, at: placeOf(s.at), to: engine.State(s.to), retry: s.retry, clears: s.clears, interrupt: interrupt}
	c.checkExit(s)
	e.when = c.guard(s.rule, s.when)
	if s.after != nil {
		e.after = c.deadline(s.rule, s.after)
		e.after.at = placeOf(s.after)
	}
	if s.when == nil && s.after == nil && !s.flawed {
		c.file.Errorf(s.at, "exit-unguarded", s.rule, "add when: or after:", "the rule %s has neither when nor after: it would fire at once", s.rule)
	}
	e.groups = c.groups(e.when)
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
		// what is wrong with it is told
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

func (c *compiler) deadline(rule string, node *yaml.Node) *deadline {
	if d, err := time.ParseDuration(node.Value); err == nil {
		if d < minDeadline {
			c.file.Errorf(node, "after-range", rule, "write a duration of 1s or more, or ask with when: for what the rule waits for",
				"after is %s, and a deadline is at least %s", d, minDeadline)
		}
		return &deadline{literal: d, fact: -1}
	}
	if yamlpos.TooLong(node.Value) {
		c.file.Errorf(node, "after-range", rule, "write a shorter duration such as 15m; a state in which servers may wait for ever is stable: true",
			"after is %s, and a deadline is at most %s", node.Value, yamlpos.Longest)
		return &deadline{fact: -1}
	}
	if i, ok := c.vocabulary.Index(node.Value); ok && c.vocabulary.Facts[i].Kind == engine.Duration {
		return &deadline{fact: i}
	}
	if !c.file.Told(node) {
		c.file.Errorf(node, "after-type", rule, "write a duration such as 15m, or the name of a duration fact such as wipe.budget",
			"%q is neither a duration nor a duration fact", node.Value)
	}
	return &deadline{fact: -1}
}

// groups lists the fact groups behind a guard, so that the shell knows what a move relies on.
func (c *compiler) groups(g *guard) []string {
	var groups []string
	for _, a := range g.atoms(nil) {
		for _, f := range c.list[a].facts {
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
		g := &guardCompiler{file: c.file, env: c.guardEnv, atoms: c.atoms, misnamed: c.misnamed, states: c.states, effects: effects}
		if c.file.Told(i.must) {
			continue
		}
		if must := g.compile(i.rule, i.must); must != nil {
			l.invariants = append(l.invariants, &invariant{rule: i.rule, at: placeOf(i.at), must: must})
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
			l.migrate[engine.State(m.from)] = engine.State(m.to)
			l.migrateAt[engine.State(m.from)] = placeOf(m.at)
		}
	}
}
