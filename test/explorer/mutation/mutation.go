// SPDX-License-Identifier: Apache-2.0

// Package mutation changes a lifecycle in every small way in which an author might get it wrong: a guard dropped, an exit
// that leads elsewhere, a deadline forgotten.
package mutation

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Mutant is a lifecycle with one change.
type Mutant struct {
	// Kind is the sort of change, and Where the place of it, both in words.
	Kind, Where string
	// Lifecycle is the changed lifecycle.yaml.
	Lifecycle []byte
}

// String is the change in words.
func (m Mutant) String() string { return m.Kind + ": " + m.Where }

// site is one place at which one sort of change can be made.
type site struct {
	where string
	apply func()
}

// operator is one sort of change. It lists its sites in a tree, always in the same order.
type operator struct {
	kind  string
	sites func(lifecycle) []site
}

// All makes every mutant of a lifecycle, each from the unchanged original, in an order that depends on nothing else.
func All(original []byte) ([]Mutant, error) {
	first, err := parse(original)
	if err != nil {
		return nil, err
	}
	var all []Mutant
	for _, o := range operators {
		for i := range o.sites(first) {
			l, err := parse(original)
			if err != nil {
				return nil, err
			}
			s := o.sites(l)[i]
			s.apply()
			var text bytes.Buffer
			encoder := yaml.NewEncoder(&text)
			encoder.SetIndent(2)
			if err := encoder.Encode(l.root); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", o.kind, s.where, err)
			}
			all = append(all, Mutant{Kind: o.kind, Where: s.where, Lifecycle: text.Bytes()})
		}
	}
	return all, nil
}

// Kinds lists every sort of change.
func Kinds() []string {
	kinds := make([]string, 0, len(operators))
	for _, o := range operators {
		kinds = append(kinds, o.kind)
	}
	return kinds
}

var operators = []operator{
	{"a guard dropped", eachExit(dropField("when"))},
	{"a guard negated", eachExit(rewriteField("when", negated))},
	{"a conjunct dropped from a guard", eachExit(dropParts("when", "&&"))},
	{"an alternative dropped from a guard", eachExit(dropParts("when", "||"))},
	{"an exit redirected", redirected},
	{"a mark kept that an exit clears", eachExit(dropField("clears"))},
	{"Dirty cleared by another exit", eachExit(addField("clears", "Dirty"))},
	{"a mark dropped", eachState(dropField("marks"))},
	{"a mark set on entering", eachState(addField("marks", "Managed"))},
	{"a deadline that passes at once", eachExit(dropField("after"))},
	{"a deadline shortened", eachExit(rewriteField("after", shortened))},
	{"a deadline dropped", eachExitWith("after", dropItem)},
	{"a retry not counted", eachExit(dropField("retry"))},
	{"an exception dropped", eachException},
	{"all exceptions dropped", eachExit(dropField("except"))},
	{"an exit dropped", eachExitWith("", dropItem)},
	{"two exits swapped", eachExitWith("", swapWithNext)},
	{"two effects swapped", eachEffectWith(swapWithNext)},
	{"an effect dropped", eachEffectWith(dropItem)},
	{"an effect without its condition", eachEffect(dropField("when"))},
	{"an effect on the opposite condition", eachEffect(rewriteField("when", negated))},
	{"a conjunct dropped from an effect's condition", eachEffect(dropParts("when", "&&"))},
	{"an alternative added to an effect's condition", widenedEffects},
	{"an effect added", addedEffects},
	{"a state no longer stable", eachState(dropField("stable"))},
	{"operations no longer listed", eachState(dropField("operations"))},
	{"a definition negated", eachDefinition(negated)},
	{"a definition that always holds", eachDefinition(func(string) []string { return []string{"true"} })},
	{"a definition that never holds", eachDefinition(func(string) []string { return []string{"false"} })},
	{"a conjunct dropped from a definition", eachDefinition(func(text string) []string { return without(text, "&&") })},
	{"an alternative dropped from a definition", eachDefinition(func(text string) []string { return without(text, "||") })},
	{"the unknown taken for the known", eachDefinition(unknownTaken)},
}
