// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"

	"github.com/metalaw/metalaw/engine/internal/celrule"
)

const (
	// MaxBytes bounds the document.
	MaxBytes = 4096
	// MaxAlternatives bounds the list of alternatives.
	MaxAlternatives = 8
	// MaxPreferred bounds the list of preferences.
	MaxPreferred = 16
	// MaxWeight bounds a weight in both directions.
	MaxWeight = 100
	// MaxScore bounds what all preferences together can add or take away.
	MaxScore = 1000
	// MaxSkew bounds maxSkew.
	MaxSkew = 1000
	// MaxGang bounds the size of a gang.
	MaxGang = 256
	// maxCost bounds what all conditions together may cost in CEL's units on the longest facts: each is evaluated for every
	// server that a claim could have.
	maxCost = 500
	// slowly is how many times as much a condition counts that only CEL itself can evaluate.
	slowly = 10
)

// Limit is one bound, for the reference page.
type Limit struct{ What, Bound string }

// Limits lists every bound.
func Limits() []Limit {
	return []Limit{
		{"length of the document", fmt.Sprintf("%d bytes", MaxBytes)},
		{"length of a condition", fmt.Sprintf("%d characters", celrule.MaxLength)},
		{"depth of a condition", fmt.Sprintf("%d levels", celrule.MaxDepth)},
		{"cost of all conditions", fmt.Sprintf("%d units, as CEL estimates them; a comparison has 2, of two facts that are texts 28, "+
			"and `contains` 3 for each character. What joins texts, turns a sign around, counts labels or computes the members "+
			"of a list counts %d times", maxCost, slowly)},
		{"alternatives", fmt.Sprint(MaxAlternatives)},
		{"preferences", fmt.Sprint(MaxPreferred)},
		{"weight", fmt.Sprintf("-%d to %d, and not 0", MaxWeight, MaxWeight)},
		{"what the weights that count for or against a server can add up to", fmt.Sprint(MaxScore)},
		{"maxSkew", fmt.Sprintf("1 to %d", MaxSkew)},
		{"size of a gang", fmt.Sprintf("2 to %d", MaxGang)},
	}
}

// Field is one field of the document, for the reference page.
type Field struct{ Name, Type, Doc string }

// Fields lists every field of the document.
func Fields() []Field {
	return []Field{
		{fieldWhere, "condition", "The server must satisfy it."},
		{fieldAlternatives, "list", "Groups of servers, best first: the first of which a server can be had now is taken."},
		{"alternatives[].selector", "label selector", "`matchLabels` and `matchExpressions`, as in `spec.serverSelector`."},
		{"alternatives[].where", "condition", "Besides the selector. An alternative with neither has every server; it comes last."},
		{fieldPreferred, "list", "What makes a server better. The weights of all that hold are added to the score of the policy."},
		{"preferred[].weight", "int", "What is added; below zero it is taken away."},
		{"preferred[].where", "condition", "For which servers."},
		{fieldSpread, "mapping", "Keeps claims apart: in no place may there be more than `maxSkew` more of them than in the emptiest."},
		{"spread.key", "string", "What a place is: `rack`, `zone` or `region`, which are the facts of these names, or the key of a label."},
		{"spread.maxSkew", "int", "1 unless given."},
		{"spread.claims", "label selector", "Which claims of this namespace count; the claim itself always does. " +
			"Unless given those of the gang. `{}` is every claim of the namespace."},
		{fieldGang, "mapping", "Claims of this namespace that get servers together or not at all. None boots before all have one."},
		{"gang.name", "string", "The same in all of them: lower-case letters, digits and dashes, at most 63."},
		{"gang.size", "int", "How many they are; the same in all of them."},
	}
}

const (
	fieldWhere        = "where"
	fieldAlternatives = "alternatives"
	fieldPreferred    = "preferred"
	fieldSpread       = "spread"
	fieldGang         = "gang"
)
