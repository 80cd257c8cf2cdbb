// SPDX-License-Identifier: Apache-2.0

package regonative

import (
	"context"
	"math"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// builtin translates the call of a built-in function. Its value is undefined where the function has none, and the evaluation
// gives up where the function fails.
func (s *scope) builtin(name string, args []*ast.Term, loc *ast.Location) eval {
	if name == ast.ObjectGet.Name {
		if get := s.objectGet(args); get != nil {
			return get
		}
	}
	if name == ast.Member.Name {
		if member := s.member(args); member != nil {
			return member
		}
	}
	values := make([]eval, len(args))
	for i, arg := range args {
		values[i] = s.value(arg)
	}
	slow := interpreted(name, values)
	switch {
	case slow == nil:
		s.fail(loc, "of "+name, "compare values instead")
	case name == ast.ObjectGet.Name:
		return getKey(values, slow)
	case len(values) != 2:
		return slow
	}
	if fast := comparisons[name]; fast != nil {
		return pair(values, nil, func(a, b Value) (Value, bool) { return Bool(fast(compare(a, b))), true })
	}
	if fast := texts[name]; fast != nil {
		return pair(values, slow, func(a, b Value) (Value, bool) {
			return Bool(fast(a.s, b.s)), a.kind == isText && b.kind == isText
		})
	}
	if fast := numbers[name]; fast != nil {
		return pair(values, slow, func(a, b Value) (Value, bool) {
			if a.kind != isInt || b.kind != isInt {
				return Value{}, false
			}
			n, ok := fast(a.n, b.n)
			return Int(n), ok
		})
	}
	return slow
}

// pair evaluates two operands, and calls slow where fast has no answer.
func pair(values []eval, slow eval, fast func(a, b Value) (Value, bool)) eval {
	left, right := values[0], values[1]
	return func(f *Frame) (Value, bool) {
		a, ok := left(f)
		if !ok {
			return a, false
		}
		b, ok := right(f)
		if !ok {
			return b, false
		}
		if v, ok := fast(a, b); ok {
			return v, true
		}
		return slow(f)
	}
}

var comparisons = map[string]func(order int) bool{
	"equal": func(c int) bool { return c == 0 },
	"neq":   func(c int) bool { return c != 0 },
	"lt":    func(c int) bool { return c < 0 },
	"lte":   func(c int) bool { return c <= 0 },
	"gt":    func(c int) bool { return c > 0 },
	"gte":   func(c int) bool { return c >= 0 },
}

var texts = map[string]func(a, b string) bool{
	"startswith": strings.HasPrefix,
	"endswith":   strings.HasSuffix,
	"contains":   strings.Contains,
}

// numbers computes with whole numbers. ok is false where the result is none or has too many digits, and where the operation
// fails: OPA knows what comes of it.
var numbers = map[string]func(a, b int64) (n int64, ok bool){
	"plus":  func(a, b int64) (int64, bool) { return a + b, (a+b > a) == (b > 0) },
	"minus": func(a, b int64) (int64, bool) { return a - b, (a-b < a) == (b > 0) },
	"mul":   func(a, b int64) (int64, bool) { return a * b, small(a) && small(b) },
	"div": func(a, b int64) (int64, bool) {
		if a == 0 && b > 0 {
			return 0, true
		}
		if b == 0 || a == 0 || !small(a) || !small(b) || a%b != 0 {
			return 0, false
		}
		return a / b, true
	},
	"rem": func(a, b int64) (int64, bool) {
		if b == 0 || !small(a) || !small(b) {
			return 0, false
		}
		return a % b, true
	},
}

// small numbers cannot overflow, and OPA computes with them as Go does.
func small(n int64) bool { return n >= math.MinInt32 && n <= math.MaxInt32 }

// interpreted calls OPA's own function.
func interpreted(name string, args []eval) eval {
	call := topdown.GetBuiltin(name)
	if call == nil {
		return nil
	}
	return func(f *Frame) (result Value, defined bool) {
		operands := make([]*ast.Term, len(args), len(args)+1)
		for i, arg := range args {
			v, ok := arg(f)
			if !ok {
				return Value{}, false
			}
			operands[i] = v.Term()
		}
		err := call(topdown.BuiltinContext{Context: context.Background(), Metrics: metrics.NoOp()}, operands, func(out *ast.Term) error {
			result, defined = Of(out.Value), true
			return nil
		})
		if err != nil {
			f.GaveUp = true
		}
		return result, defined
	}
}

// objectGet reads one key of an object of the input, so that nothing else of the object is read.
func (s *scope) objectGet(args []*ast.Term) eval {
	from, key := s.operand(args[0]), s.operand(args[1])
	name, ok := key.textLiteral()
	if !from.isInput || from.field == nil || from.field.Plain || !ok {
		return nil
	}
	field := s.source(append(append([]string{}, from.keys...), name))
	if field == nil || len(field.Keys) <= len(from.keys) {
		return nil
	}
	fallback := s.value(args[2])
	value := operand{isInput: true, keys: field.Keys, field: field}.use(s.Translator)
	return func(f *Frame) (Value, bool) {
		if v, ok := value(f); ok {
			return v, true
		}
		return fallback(f)
	}
}

// getKey is object.get with a key that is computed.
func getKey(args []eval, slow eval) eval {
	return func(f *Frame) (Value, bool) {
		in, ok := args[0](f)
		if !ok {
			return in, false
		}
		key, ok := args[1](f)
		if !ok {
			return key, false
		}
		if (in.kind != isTexts && in.kind != isCounts) || key.kind != isText {
			return slow(f)
		}
		fallback, ok := args[2](f)
		if v, found := in.At(key); found && ok {
			return v, true
		}
		return fallback, ok
	}
}

// member looks a string up in a list of literals.
func (s *scope) member(args []*ast.Term) eval {
	list := s.operand(args[1]).literal
	if list == nil || list.kind != isOther {
		return nil
	}
	words, all := map[string]bool{}, true
	list.each(func(_, element Value) {
		word, ok := element.Text()
		words[word], all = true, all && ok
	})
	if !all {
		return nil
	}
	value := s.value(args[0])
	return func(f *Frame) (Value, bool) {
		v, ok := value(f)
		return Bool(v.kind == isText && words[v.s]), ok
	}
}
