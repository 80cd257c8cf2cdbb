// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// edit lists the changes that can be made to one mapping.
type edit func(name string, n *yaml.Node) []site

func dropField(key string) edit {
	return func(name string, n *yaml.Node) []site {
		if field(n, key) == nil {
			return nil
		}
		return []site{{name + " without " + key + " " + inline(field(n, key)), func() { dropKey(n, key) }}}
	}
}

// addField adds a list with one word, where there is none.
func addField(key, word string) edit {
	return func(name string, n *yaml.Node) []site {
		if n.Kind != yaml.MappingNode || field(n, key) != nil {
			return nil
		}
		return []site{{name + " " + key + " " + word, func() { setKey(n, key, list(word)) }}}
	}
}

func rewriteField(key string, rewrite func(string) []string) edit {
	return func(name string, n *yaml.Node) []site { return rewritten(name, field(n, key), rewrite) }
}

func rewritten(name string, value *yaml.Node, rewrite func(string) []string) []site {
	if value == nil {
		return nil
	}
	var all []site
	for _, text := range rewrite(value.Value) {
		all = append(all, site{name + ": " + text, func() { *value = *scalar(text) }})
	}
	return all
}

func dropParts(key, operator string) edit {
	return rewriteField(key, func(text string) []string { return without(text, operator) })
}

func eachState(e edit) func(lifecycle) []site {
	return func(l lifecycle) []site {
		var all []site
		for _, s := range l.states() {
			all = append(all, e(s.name, s.node)...)
		}
		return all
	}
}

func eachExit(e edit) func(lifecycle) []site {
	return func(l lifecycle) []site { return onEach(l.exits(), e) }
}

func eachEffect(e edit) func(lifecycle) []site {
	return func(l lifecycle) []site { return onEach(l.effects(), e) }
}

func onEach(all []member, e edit) []site {
	var sites []site
	for _, m := range all {
		sites = append(sites, e(m.name, m.node())...)
	}
	return sites
}

func eachDefinition(rewrite func(string) []string) func(lifecycle) []site {
	return func(l lifecycle) []site {
		var all []site
		for _, d := range entries(field(l.root, "define")) {
			all = append(all, rewritten(d.name, d.node, rewrite)...)
		}
		return all
	}
}

// eachExitWith changes the list in which an exit stands; with a key, only of exits that have it.
func eachExitWith(key string, change func(member) []site) func(lifecycle) []site {
	return func(l lifecycle) []site {
		var all []site
		for _, m := range l.exits() {
			if key == "" || field(m.node(), key) != nil {
				all = append(all, change(m)...)
			}
		}
		return all
	}
}

func eachEffectWith(change func(member) []site) func(lifecycle) []site {
	return func(l lifecycle) []site {
		var all []site
		for _, m := range l.effects() {
			all = append(all, change(m)...)
		}
		return all
	}
}

func dropItem(m member) []site {
	return []site{{m.name, func() { m.list.Content = slices.Delete(m.list.Content, m.at, m.at+1) }}}
}

func swapWithNext(m member) []site {
	if m.at+1 >= len(m.list.Content) {
		return nil
	}
	return []site{{m.name + " after the next", func() {
		m.list.Content[m.at], m.list.Content[m.at+1] = m.list.Content[m.at+1], m.list.Content[m.at]
	}}}
}

// eachException takes the states from the lists of those in which an interrupt does not count.
func eachException(l lifecycle) []site {
	var all []site
	for _, m := range l.exits() {
		except := field(m.node(), "except")
		if except == nil {
			continue
		}
		for i, s := range except.Content {
			all = append(all, site{m.name + " also in " + s.Value, func() { except.Content = slices.Delete(except.Content, i, i+1) }})
		}
	}
	return all
}

// redirections is how many other targets each exit is given: every state would make too many mutants.
const redirections = 3

// redirected lets exits lead to other states, which ones depends on the exit's place.
func redirected(l lifecycle) []site {
	states := l.states()
	var all []site
	for i, m := range l.exits() {
		to := field(m.node(), "to")
		var others []string
		for _, s := range states {
			if to != nil && s.name != to.Value {
				others = append(others, s.name)
			}
		}
		for k := range min(redirections, len(others)) {
			other := others[(i+k*len(others)/redirections)%len(others)]
			all = append(all, site{m.name + " to " + other, func() { to.Value = other }})
		}
	}
	return all
}

// widenings is how many definitions each condition is widened by: all of them would make too many mutants. A part that has
// alternatives already is widened by every one, because that is where an author adds another.
const widenings = 6

// widenedEffects lets each effect that has a condition be wanted where one more definition holds, or does not hold: beside
// the whole condition, and beside each part of it.
func widenedEffects(l lifecycle) []site {
	var atoms []string
	for _, d := range entries(field(l.root, "define")) {
		atoms = append(atoms, d.name, "!"+d.name)
	}
	var all []site
	for i, m := range l.effects() {
		when := field(m.node(), "when")
		if when == nil || !slices.Contains(disruptive, effectOf(m.node())) {
			continue
		}
		whole := when.Value
		for k, part := range append(split(whole, "&&"), whole) {
			chosen := chosenOf(atoms, i+k)
			if part != whole && strings.Contains(part, "||") {
				chosen = atoms
			}
			for _, atom := range chosen {
				wider := "(" + part + " || " + atom + ")"
				if part == whole {
					wider = "(" + whole + ") || " + atom
				}
				all = append(all, rewritten(m.name, when, func(string) []string { return []string{strings.Replace(whole, part, wider, 1)} })...)
			}
		}
	}
	return all
}

// chosenOf takes some of the words, which ones depends on the place; both a definition and its opposite occur.
func chosenOf(words []string, place int) []string {
	var some []string
	for k := range min(widenings, len(words)) {
		some = append(some, words[(7*place+k*len(words)/widenings)%len(words)])
	}
	return some
}

// disruptive are the effects whose condition is widened: those that change power, or what is booted.
var disruptive = []string{"PowerOff", "PowerOn", "PowerAsClaimed", "BootProbe", "BootWipe", "BootAsClaimed", "ResetAsAsked"}

// everyEffect lists the effects that touch a machine, its boot, its claim or what is remembered of its holder.
var everyEffect = []string{"PowerOff", "PowerOn", "PowerAsClaimed", "BootProbe", "BootWipe", "BootAsClaimed", "ClearBoot",
	"ReleaseClaim", "ForgetHolder", "ResetAsAsked", "ApplyBootOrder"}

// addedEffects puts each effect first in each state that has no such effect.
func addedEffects(l lifecycle) []site {
	var all []site
	for _, s := range l.states() {
		ensure := field(s.node, "ensure")
		for _, effect := range everyEffect {
			if ensure != nil && slices.ContainsFunc(ensure.Content, func(n *yaml.Node) bool { return effectOf(n) == effect }) {
				continue
			}
			all = append(all, site{effect + " in " + s.name, func() {
				if ensure == nil {
					setKey(s.node, "ensure", list(effect))
					return
				}
				ensure.Content = slices.Insert(ensure.Content, 0, scalar(effect))
			}})
		}
	}
	return all
}
