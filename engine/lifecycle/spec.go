// SPDX-License-Identifier: Apache-2.0

// Package lifecycle compiles lifecycle.yaml, a state machine written in CEL, and decides by it. Compiling reports every
// problem with its place; deciding is pure and total.
package lifecycle

import (
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// The spec types hold what the author wrote, with the place of everything that a check may have to point at.

type spec struct {
	initial    string
	initialAt  *yaml.Node
	define     []definition
	interrupts []exitSpec
	states     []stateSpec
	says       []saying
	invariants []invariantSpec
	migrate    []migration
}

type definition struct {
	name string
	key  *yaml.Node
	expr *yaml.Node
}

type stateSpec struct {
	name       string
	key        *yaml.Node
	means      string
	stable     bool
	marks      []string
	marksAt    *yaml.Node
	operations []string
	opsAt      *yaml.Node
	ensure     []ensureSpec
	exits      []exitSpec
	// flawed says that something of its own was found wrong while it was read: what seems to be missing follows from that.
	flawed bool
}

type ensureSpec struct {
	do   string
	at   *yaml.Node
	when *yaml.Node
	with []yamlpos.Field
}

type exitSpec struct {
	rule   string
	at     *yaml.Node
	to     string
	toAt   *yaml.Node
	when   *yaml.Node
	after  *yaml.Node
	retry  bool
	clears []string
	clrAt  *yaml.Node
	except []string
	excAt  *yaml.Node
	// flawed is as for a state.
	flawed bool
}

type invariantSpec struct {
	rule string
	at   *yaml.Node
	must *yaml.Node
}

// saying is the message of a server that a rule has led to where it is.
type saying struct {
	rule string
	at   *yaml.Node
	text string
}

type migration struct {
	from string
	key  *yaml.Node
	to   string
	at   *yaml.Node
}

const (
	apiVersion = "policy.metalaw.dev/v1alpha1"
	kindName   = "Lifecycle"
)

func parseSpec(f *yamlpos.File) spec {
	var s spec
	for _, field := range f.Fields(f.Root, "the lifecycle",
		"apiVersion", "kind", "initial", "define", "interrupts", "states", "says", "invariants", "migrate") {
		switch field.Name {
		case "apiVersion":
			f.Only(field, "yaml-api-version", apiVersion)
		case "kind":
			f.Only(field, "yaml-kind", kindName)
		case "initial":
			s.initial, s.initialAt = f.Text(field.Value, "initial"), field.Value
		case "define":
			for _, d := range f.Fields(field.Value, "define") {
				f.Text(d.Value, "the definition of "+d.Name)
				s.define = append(s.define, definition{name: d.Name, key: d.Key, expr: d.Value})
			}
		case "interrupts":
			for _, item := range f.Items(field.Value, "interrupts") {
				s.interrupts = append(s.interrupts, parseExit(f, item, "an interrupt", "rule", "to", "when", "except"))
			}
		case "states":
			for _, state := range f.Fields(field.Value, "states") {
				s.states = append(s.states, parseState(f, state))
			}
		case "says":
			s.says = parseSayings(f, field.Value)
		case "invariants":
			s.invariants = parseInvariants(f, field.Value)
		case "migrate":
			for _, m := range f.Fields(field.Value, "migrate") {
				s.migrate = append(s.migrate, migration{from: m.Name, key: m.Key, to: f.Text(m.Value, "the target"), at: m.Value})
			}
		}
	}
	return s
}

func parseState(f *yamlpos.File, state yamlpos.Field) stateSpec {
	s := stateSpec{name: state.Name, key: state.Key}
	before := len(f.Found)
	fields := f.Fields(state.Value, "the state "+state.Name, "means", "stable", "marks", "operations", "ensure", "exits")
	s.flawed = len(f.Found) > before
	for _, field := range fields {
		before := len(f.Found)
		switch field.Name {
		case "means":
			s.means = f.Text(field.Value, "means")
			s.flawed = s.flawed || len(f.Found) > before
		case "stable":
			s.stable = f.Bool(field.Value, "stable")
			s.flawed = s.flawed || len(f.Found) > before
		case "marks":
			s.marks, s.marksAt = f.Texts(field.Value, "marks"), field.Value
		case "operations":
			s.operations, s.opsAt = f.Texts(field.Value, "operations"), field.Value
		case "ensure":
			for _, item := range f.Items(field.Value, "ensure") {
				s.ensure = append(s.ensure, parseEnsure(f, item))
			}
		case "exits":
			for _, item := range f.Items(field.Value, "exits") {
				s.exits = append(s.exits, parseExit(f, item, "an exit", "rule", "to", "when", "after", "retry", "clears"))
			}
		}
	}
	return s
}

func parseEnsure(f *yamlpos.File, item *yaml.Node) ensureSpec {
	if item.Kind == yaml.ScalarNode {
		return ensureSpec{do: f.Text(item, "an effect"), at: item}
	}
	e := ensureSpec{at: item}
	for _, field := range f.Fields(item, "an entry of ensure", "do", "when", "with") {
		switch field.Name {
		case "do":
			e.do, e.at = f.Text(field.Value, "do"), field.Value
		case "when":
			f.Text(field.Value, "when")
			e.when = field.Value
		case "with":
			e.with = f.Fields(field.Value, "with")
		}
	}
	return e
}

func parseExit(f *yamlpos.File, item *yaml.Node, what string, allowed ...string) exitSpec {
	e := exitSpec{at: item}
	before := len(f.Found)
	for _, field := range f.Fields(item, what, allowed...) {
		switch field.Name {
		case "rule":
			e.rule, e.at = f.Text(field.Value, "rule"), field.Value
		case "to":
			e.to, e.toAt = f.Text(field.Value, "to"), field.Value
		case "when":
			f.Text(field.Value, "when")
			e.when = field.Value
		case "after":
			f.Text(field.Value, "after")
			e.after = field.Value
		case "retry":
			e.retry = f.Bool(field.Value, "retry")
		case "clears":
			e.clears, e.clrAt = f.Texts(field.Value, "clears"), field.Value
		case "except":
			e.except, e.excAt = f.Texts(field.Value, "except"), field.Value
		}
	}
	e.flawed = len(f.Found) > before
	return e
}

func parseSayings(f *yamlpos.File, n *yaml.Node) []saying {
	var all []saying
	for _, said := range f.Fields(n, "says") {
		all = append(all, saying{rule: said.Name, at: said.Key, text: f.Text(said.Value, "what "+said.Name+" says")})
	}
	return all
}

func parseInvariants(f *yamlpos.File, n *yaml.Node) []invariantSpec {
	var all []invariantSpec
	for _, item := range f.Items(n, "invariants") {
		inv := invariantSpec{at: item}
		for _, field := range f.Fields(item, "an invariant", "rule", "must") {
			switch field.Name {
			case "rule":
				inv.rule, inv.at = f.Text(field.Value, "rule"), field.Value
			case "must":
				f.Text(field.Value, "must")
				inv.must = field.Value
			}
		}
		all = append(all, inv)
	}
	return all
}
