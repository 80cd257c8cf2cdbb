// SPDX-License-Identifier: Apache-2.0

// Package celrule is what the CEL expressions of bundles and of claims have in common: how long they may be and what they
// may cost, the words that report a mistake, and the evaluation of plain comparisons without CEL.
package celrule

import (
	"time"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
)

const (
	// MaxLength bounds the length of one expression in code points; the longest of the shipped bundles has 120.
	MaxLength = 1024
	// MaxDepth bounds how deep an expression may nest.
	MaxDepth = 32
)

// Limits are the bounds of every expression. All macros are left out: without comprehensions the cost of an expression is
// bounded by its length.
func Limits() []cel.EnvOption {
	return []cel.EnvOption{
		cel.ClearMacros(),
		cel.ParserExpressionSizeLimit(MaxLength),
		cel.ParserRecursionLimit(MaxDepth),
	}
}

// Validators look at literals.
func Validators() cel.EnvOption {
	return cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(),
		cel.ValidateHomogeneousAggregateLiterals())
}

// Truth is the outcome of an expression. An error is never false.
type Truth uint8

const (
	// Unknown: it was not evaluated.
	Unknown Truth = iota
	// False: it does not hold.
	False
	// True: it holds.
	True
	// Failed: it cannot be evaluated.
	Failed
)

// TruthOf is True or False.
func TruthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

// String is the word for it.
func (t Truth) String() string {
	return [...]string{"unknown", "false", "true", "error"}[t]
}

// DurationLiteral returns the length in duration("5m"), if the expression is that.
func DurationLiteral(e celast.Expr) (time.Duration, bool) {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != "duration" || len(e.AsCall().Args()) != 1 {
		return 0, false
	}
	text, ok := StringLiteral(e.AsCall().Args()[0])
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// StringLiteral returns a text in quotes, if the expression is that.
func StringLiteral(e celast.Expr) (string, bool) {
	if e.Kind() != celast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().Value().(string)
	return text, ok
}
