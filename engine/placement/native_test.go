// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/selection"
)

// author writes conditions of the fragment that needs no CEL.
type author struct{ *rapid.T }

func (a author) pick(of ...string) string { return rapid.SampledFrom(of).Draw(a.T, "of") }

func (a author) fact(kinds ...engine.Kind) string {
	var all []string
	for _, f := range Facts() {
		for _, kind := range kinds {
			if f.kind == kind && f.Name != "server.health" {
				all = append(all, f.Name)
			}
		}
	}
	return a.pick(all...)
}

func (a author) number(depth int) string {
	switch n := rapid.IntRange(0, 5).Draw(a.T, "number"); {
	case n == 0 && depth > 0:
		return "(" + a.number(depth-1) + a.pick(" + ", " - ", " * ", " / ", " % ") + a.number(depth-1) + ")"
	case n == 1:
		return a.pick("0", "1", "-1", "7", "9223372036854775807")
	case n == 2:
		return "size(" + a.text() + ")"
	default:
		return a.fact(engine.Int)
	}
}

func (a author) text() string {
	return a.pick(a.fact(engine.String), a.fact(engine.String), `"a"`, `""`, `label("a")`, `label("b")`, `server.labels["a"]`, `server.labels.b`)
}

func (a author) condition(depth int) string {
	if depth == 0 {
		switch rapid.IntRange(0, 6).Draw(a.T, "test") {
		case 0:
			return a.text() + a.pick(" == ", " != ", " < ", " <= ", " > ", " >= ") + a.text()
		case 1:
			return a.text() + a.pick(".startsWith", ".endsWith", ".contains") + "(" + a.text() + ")"
		case 2:
			return a.text() + ` in ["a", "ä"]`
		case 3:
			return a.text() + " in server.labels"
		case 4:
			return a.number(1) + " in [0, 1, -9223372036854775808]"
		case 5:
			return `server.health == "OK"`
		default:
			return a.number(2) + a.pick(" == ", " != ", " < ", " <= ", " > ", " >= ") + a.number(2)
		}
	}
	switch rapid.IntRange(0, 3).Draw(a.T, "logic") {
	case 0:
		return "!(" + a.condition(depth-1) + ")"
	case 1:
		return "((" + a.condition(depth-1) + ") ? (" + a.condition(depth-1) + ") : (" + a.condition(depth-1) + "))"
	case 2:
		return "(" + a.condition(depth-1) + " && " + a.condition(depth-1) + ")"
	default:
		return "(" + a.condition(depth-1) + " || " + a.condition(depth-1) + ")"
	}
}

// server draws a value for each fact.
func (a author) server() *selection.Candidate {
	c := &selection.Candidate{}
	for i := range Facts() {
		field := facts().all[i].field(c)
		switch field.Kind() {
		case reflect.Int64:
			field.SetInt(rapid.SampledFrom([]int64{0, 1, 2, -1, 1 << 62, -1 << 63}).Draw(a.T, "n"))
		case reflect.String:
			field.SetString(a.pick("", "a", "ab", "ä", "OK", "\xff"))
		case reflect.Map:
			field.Set(reflect.ValueOf(rapid.MapOf(rapid.SampledFrom([]string{"a", "b"}), rapid.SampledFrom([]string{"", "a"})).Draw(a.T, "labels")))
		case reflect.Bool:
			field.SetBool(rapid.Bool().Draw(a.T, "b"))
		}
	}
	return c
}

func TestAConditionWithoutCELYieldsWhatCELYields(t *testing.T) {
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		a := author{r}
		source := a.condition(rapid.IntRange(0, 3).Draw(r, "depth"))
		checked, issues := env.Compile(source)
		if issues.Err() != nil {
			if strings.Contains(issues.Err().Error(), "exceeds") || strings.Contains(issues.Err().Error(), "recursion") {
				return
			}
			r.Fatal(source, issues.Err())
		}
		program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			r.Skip(source, err) // folding its constants fails
		}
		e := &expression{&celrule.Rule[*selection.Candidate]{Source: source, Program: program, Native: celrule.CompileNative(checked.NativeRep(), names())}}
		if e.Native == nil {
			r.Fatalf("%s is left to CEL", source)
		}
		for range 5 {
			c := a.server()
			want, err := e.interpret(c)
			if got := e.Native(c); got != want || (got == celrule.Failed) != (err != nil) {
				r.Fatalf("%s is %s without CEL, and %s with it (%v)\n%+v", source, got, want, err, c)
			}
		}
	})
}

func TestWhatOnlyCELEvaluatesIsEvaluatedByIt(t *testing.T) {
	c := &selection.Candidate{Model: "R750", Cores: 2, Labels: map[string]string{"a": "R750"}}
	for _, where := range []string{`server.model + "x" == "R750x"`, `-server.cores == -2`, `server.model in [server.sku, server.model]`, `size(server.labels) == 1`} {
		p := compiled(t, "where: '"+where+"'")
		if p.where.Native != nil {
			t.Errorf("%s needs no CEL", where)
		}
		if j := p.Judge(c); !j.Accepted {
			t.Errorf("%s: %+v", where, j)
		}
	}
}
