// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// CodeBound: a call would make or look at more than one call, or one evaluation, may.
const CodeBound = "rego-bound"

const (
	// maxResult is how much one call may make, in bytes. What policies say are names, labels and sentences.
	maxResult = 256 << 10
	// maxMade is what the calls of one evaluation may make together, in bytes.
	maxMade = 16 << 20
	// maxElements is how many parts a value may have that a call reads to its depth or copies, the parts of its parts included.
	maxElements = 32 << 10
	// elementBytes is what one part of a collection takes in a copy.
	elementBytes = 8
	// maxDigits is how long a number may be with which a rule calculates. The largest that a double holds has 309.
	maxDigits = 400
	// maxParsed is how long a text may be that is read as a version, a time or a pattern.
	maxParsed = 512
)

// BoundError is a call that is not made because of what it would come to. It ends the evaluation: it is never undefined.
type BoundError struct {
	// Function is what was called, and Says what would be too much about it.
	Function, Says string
}

// Error names the function and what would be too much about the call.
func (e *BoundError) Error() string { return e.Function + ": " + e.Says }

// BoundHint is what to do about a BoundError.
const BoundHint = "a policy decides on names, labels and small numbers; look at less at a time"

type madeKey struct{}

// withBudget gives the calls under a context maxMade bytes together, and returns what counts them.
func withBudget(ctx context.Context) (context.Context, *atomic.Int64) {
	made := new(atomic.Int64)
	return context.WithValue(ctx, madeKey{}, made), made
}

// spend takes bytes from the budget of an evaluation. Where there is none, each call is bounded by itself.
func spend(ctx context.Context, bytes int) bool {
	if ctx == nil {
		return true
	}
	made, _ := ctx.Value(madeKey{}).(*atomic.Int64)
	return made == nil || made.Add(int64(bytes)) <= maxMade
}

// OPA looks for functions by name in one table of the process. One that is registered again has the later form for every evaluator of
// the process: the webhooks, the controllers, the command line and the tests. Those that are charged need the context, which OPA gives
// to functions only that do not say that they can do without.
func init() {
	for _, b := range allowed {
		original := topdown.GetBuiltin(b.name)
		if original == nil || b.growth == constant {
			continue
		}
		if b.growth == linear || b.growth == growing || b.name == "minus" {
			ast.BuiltinMap[b.name].CanSkipBctx = false
		}
		topdown.RegisterBuiltinFunc(b.name, b.asking(original))
	}
}

// asking is a function that looks at its operands before it works.
func (b builtin) asking(original topdown.BuiltinFunc) topdown.BuiltinFunc {
	arity := ast.BuiltinMap[b.name].Decl.Arity()
	return func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		if says := b.refuses(bctx.Context, operands[:arity]); says != "" {
			cause := &BoundError{Function: b.shown(), Says: says}
			return topdown.Halt{Err: (&topdown.Error{Code: topdown.BuiltinErr, Message: cause.Error(), Location: bctx.Location}).Wrap(cause)}
		}
		return original(bctx, operands, iter)
	}
}

// shown is how an author writes the function.
func (b builtin) shown() string {
	if b.name == "internal.template_string" {
		return "the template string"
	}
	if decl := ast.BuiltinMap[b.name]; decl.Infix != "" {
		return decl.Infix
	}
	return b.name
}

// refuses says what would be too much about a call; nothing where it may be made.
func (b builtin) refuses(ctx context.Context, operands []*ast.Term) string {
	size := 0
	switch b.growth {
	case constant:
	case comparing:
		if elements(operands[0].Value) > maxElements {
			size = maxResult + 1
		}
	case numeric:
		if slices.ContainsFunc(operands, manyDigits) {
			return fmt.Sprintf("a number has more than %d digits", maxDigits)
		}
		if _, sets := operands[0].Value.(ast.Set); sets && b.name == "minus" {
			size = copySize(operands)
		}
	case parsing:
		if slices.ContainsFunc(operands, longText) {
			return fmt.Sprintf("the text has more than %d bytes", maxParsed)
		}
	case linear:
		size = copySize(operands)
	case growing:
		size = b.predict(operands)
	}
	switch {
	case size > maxResult:
		return fmt.Sprintf("one call would make or read more than %d bytes", maxResult)
	case size > 0 && !spend(ctx, size):
		return fmt.Sprintf("with it the calls of one evaluation would make more than %d bytes", maxMade)
	}
	return ""
}

// copySize is what a copy of all operands takes. The parts of a collection are shared, and only pointers to them are copied.
func copySize(operands []*ast.Term) int {
	total := 0
	for _, operand := range operands {
		if text, ok := operand.Value.(ast.String); ok {
			total += len(text)
			continue
		}
		n := elements(operand.Value)
		if n > maxElements {
			return maxResult + 1
		}
		total += n * elementBytes
	}
	return total
}

// manyDigits says of a number, of a text that is read as one, and of a collection of either, that one has too many digits, written out.
func manyDigits(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case ast.Number:
		return manyDigitsIn(string(v))
	case ast.String:
		return manyDigitsIn(string(v))
	case *ast.Array:
		return v.Until(manyDigits)
	case ast.Set:
		return slices.ContainsFunc(v.Slice(), manyDigits)
	}
	return false
}

// manyDigitsIn says that a text is longer than a number may be, or has an exponent that would make it so.
func manyDigitsIn(text string) bool {
	if len(text) > maxDigits {
		return true
	}
	for at := strings.IndexAny(text, "eE"); at >= 0; at = strings.IndexAny(text, "eE") {
		text = strings.TrimLeft(text[at+1:], "+-")
		exponent := 0
		for i := 0; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
			if exponent = exponent*10 + int(text[i]-'0'); exponent > maxDigits {
				return true
			}
		}
	}
	return false
}

func longText(t *ast.Term) bool {
	text, ok := t.Value.(ast.String)
	return ok && len(text) > maxParsed
}
