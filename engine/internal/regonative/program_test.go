// SPDX-License-Identifier: Apache-2.0

package regonative

import (
	"fmt"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// facts are the input of the tests: fields by their name, of which those that begin with v vary.
type facts map[string]Value

// source finds input.NAME, or a key of it where it is an object.
func source(keys []string) *Field {
	name := keys[0]
	field := &Field{Keys: keys[:1], Varies: strings.HasPrefix(name, "v"), Plain: name != "labels", Text: name == "text", Always: name == "n" || name == "text",
		Get: func(in any) (Value, bool) { v, ok := in.(facts)[name]; return v, ok }}
	if len(keys) == 1 || field.Plain {
		return field
	}
	return &Field{Keys: keys[:2], Get: func(in any) (Value, bool) {
		whole, ok := field.Get(in)
		if !ok {
			return whole, false
		}
		return whole.At(Text(keys[1]))
	}}
}

// translatedRule compiles the rules of package p and translates the rule x.
func translatedRule(t *testing.T, body string) (*Program, *Rule, []Outside) {
	t.Helper()
	compiler, err := ast.CompileModules(map[string]string{"p.rego": "package p\n" + body})
	if err != nil {
		t.Fatal(err)
	}
	translator := NewTranslator(compiler, source)
	rule := translator.Rule(ast.MustParseRef("data.p.x"))
	program, outside := translator.Program()
	return program, rule, outside
}

func TestWhatARuleComesTo(t *testing.T) {
	in := facts{"n": Int(7), "text": Text("abc"), "labels": Texts(map[string]string{"a": "b"}), "list": Of(ast.MustParseTerm(`[1, "two", 3.5]`).Value)}
	for name, c := range map[string]struct{ body, want string }{
		"a number":                              {"x := 3 + 4 * 2", "11"},
		"a number that is none any more":        {"x := 7 / 2", "3.5"},
		"a division by nothing gives up":        {"x := 1 / (input.n - 7)", "gives up"},
		"a sum that overflows is still exact":   {"x := 9223372036854775807 + input.n", "9223372036854775814"},
		"a field":                               {"x := input.n", "7"},
		"a key of a field":                      {"x := input.labels.a", `"b"`},
		"a key that is not there":               {"x := input.labels.c", "undefined"},
		"a field that is not there":             {"x := input.missing", "undefined"},
		"a comparison that holds":               {"x if input.n > 3", "true"},
		"a comparison that does not":            {"x if input.n > 8", "undefined"},
		"a default":                             {"default x := 5\nx := 6 if input.n > 8", "5"},
		"the first else that holds":             {"x := 1 if input.n > 9\nelse := 2 if input.n > 5\nelse := 3", "2"},
		"not of what is undefined":              {"x if not input.missing", "true"},
		"not of what is true":                   {"x if not input.n == 7", "undefined"},
		"two rules that agree":                  {"x := 1 if input.n > 1\nx := 1 if input.n > 2", "1"},
		"two rules that disagree give up":       {"x := 1 if input.n > 1\nx := 2 if input.n > 2", "gives up"},
		"a function":                            {"x := f(input.n, 2)\nf(a, b) := a * b", "14"},
		"a function of a pattern":               {"x := f(\"one\")\nf(\"one\") := 1\nf(\"two\") := 2", "1"},
		"another rule":                          {"x := y + 1\ny := input.n", "8"},
		"another rule that is undefined":        {"x := y + 1\ny := input.missing", "undefined"},
		"membership":                            {"x if input.n in [1, 7]", "true"},
		"a loop that finds one":                 {"x if {\n\tsome e in input.list\n\te == \"two\"\n}", "true"},
		"a loop that finds none":                {"x if {\n\tsome e in input.list\n\te == \"three\"\n}", "undefined"},
		"a loop with many values gives up":      {"x := e if some e in input.list", "gives up"},
		"object.get with what is not there":     {`x := object.get(input.labels, "c", "d")`, `"d"`},
		"sprintf":                               {`x := sprintf("%s has %d", [input.text, input.n])`, `"abc has 7"`},
		"concat":                                {`x := concat("-", [input.text, "z"])`, `"abc-z"`},
		"a built-in function that fails":        {"x := to_number(input.text)", "gives up"},
		"false is a value and does not hold":    {"x := y\ny := input.n == 8", "false"},
		"an expression that is false":           {"x if input.n == 8", "undefined"},
		"a set of constants":                    {"x := {1, 2}", "{1, 2}"},
		"texts and numbers are ordered by kind": {"x if input.n < input.text", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			program, rule, outside := translatedRule(t, c.body+"\n")
			if program == nil {
				t.Fatal(outside)
			}
			f := program.NewFrame()
			f.In = in
			f.Begin()
			f.Next(nil)
			v, defined := rule.Eval(f)
			got := "undefined"
			switch {
			case f.GaveUp:
				got = "gives up"
			case defined:
				got = v.Term().String()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWhatLiesOutsideIsTold(t *testing.T) {
	for name, c := range map[string]struct{ body, why string }{
		"a comprehension":    {"x := count([e | some e in input.list])", "a comprehension"},
		"every":              {"x if {\n\tevery e in input.list { e == 1 }\n}", "of every"},
		"with":               {"x if y with input.n as 1\ny if input.n == 1", "of with"},
		"a set of rules":     {"x := count(y)\ny contains 1 if input.n > 1", "another rule reads the set y"},
		"calls that explode": {"x := f1(input.n)\n" + doubling(14), "functions call each other so often"},
	} {
		t.Run(name, func(t *testing.T) {
			program, _, outside := translatedRule(t, c.body+"\n")
			if program != nil || len(outside) == 0 || !strings.Contains(outside[0].Why, c.why) || outside[0].Hint == "" || outside[0].Location.Row == 0 {
				t.Errorf("%+v", outside)
			}
		})
	}
}

// doubling are n functions of which each calls the next one twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d(a) := f%d(a) + f%d(a)\n", i+1, i+2, i+2)
	}
	fmt.Fprintf(&b, "f%d(a) := a\n", n+1)
	return b.String()
}

// Inputs of one class have one answer, and the rules are asked once for each answer of a factor.
func TestInputsAreToldApartByWhatTheFactorsAnswer(t *testing.T) {
	program, rule, outside := translatedRule(t, "x if {\n\tbig\n\tinput.vrack == \"r1\"\n}\nbig if input.vsize > 10\n")
	if program == nil || len(program.Factors) == 0 {
		t.Fatal(outside)
	}
	f := program.NewFrame()
	f.Begin()
	places := map[string]uint16{}
	classOf := func(in facts) Class {
		at := make([]uint16, len(program.Factors))
		for i, factor := range program.Factors {
			key := fmt.Sprint(i, string(factor.Reads.AppendKey(nil, in)))
			if _, known := places[key]; !known {
				places[key] = uint16(len(places))
			}
			at[i] = places[key]
		}
		c := f.Class(at, func() { f.In = in; f.Next(at) })
		if c == nil {
			t.Fatal("it can only be evaluated for itself")
		}
		return *c
	}
	server := func(size int64, rack string) facts { return facts{"vsize": Int(size), "vrack": Text(rack)} }
	first := server(11, "r1")
	for name, c := range map[string]struct {
		other facts
		same  bool
	}{
		"the same":                          {server(11, "r1"), true},
		"another size with the same answer": {server(99, "r1"), true},
		"a size with another answer":        {server(9, "r1"), false},
	} {
		if same := classOf(first) == classOf(c.other); same != c.same {
			t.Errorf("%s: of one class %t, want %t", name, same, c.same)
		}
	}
	for _, in := range []facts{first, server(9, "r1"), server(11, "r2")} {
		f.In = in
		f.Next(nil)
		_, holds := rule.Eval(f)
		if want := in["vsize"].n > 10 && in["vrack"].s == "r1"; holds != want || f.GaveUp {
			t.Errorf("%v: holds %t, want %t", in, holds, want)
		}
	}
	if at := make([]uint16, len(program.Factors)); len(at) > 0 {
		at[0] = Beyond
		if f.Class(at, func() { f.In = first; f.Next(at) }) != nil {
			t.Error("an input without a place is of a class")
		}
	}
}

func TestAMessageIsMadeWhenItIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		holds bool
		code  string
		text  string
		late  bool
	}{
		"a constant":               {`x contains {"code": "a", "message": "no"} if input.n > 3`, true, "a", "no", true},
		"one that is put together": {`x contains {"code": "a", "message": sprintf("%d of %s", [input.n, input.text])} if input.n > 3`, true, "a", "7 of abc", true},
		"one that does not hold":   {`x contains {"code": "a", "message": "no"} if input.n > 8`, false, "a", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			compiler, err := ast.CompileModules(map[string]string{"p.rego": "package p\n" + c.body + "\n"})
			if err != nil {
				t.Fatal(err)
			}
			translator := NewTranslator(compiler, source)
			all := translator.Messages(ast.MustParseRef("data.p.x"))
			program, outside := translator.Program()
			if program == nil || len(all) != 1 {
				t.Fatal(outside)
			}
			f := program.NewFrame()
			f.In = facts{"n": Int(7), "text": Text("abc")}
			f.Begin()
			f.Next(nil)
			m := all[0]
			if got := m.Holds(f); got != c.holds || f.GaveUp || m.Code != c.code || m.Late != c.late {
				t.Errorf("holds %t, code %s, late %t, gave up %t", got, m.Code, m.Late, f.GaveUp)
			}
			if c.holds {
				if got := m.Text(f); got != c.text {
					t.Errorf("it says %q, want %q", got, c.text)
				}
			}
		})
	}
}

func TestValuesAreOrderedAndToldApartAsRegoDoes(t *testing.T) {
	values := []string{"null", "false", "true", "-3", "2", "2.5", "10", `""`, `"a"`, `"b"`, "[1]", `{"a": "b"}`, `{"a": 1}`, "{1}"}
	for _, a := range values {
		for _, b := range values {
			x, y := ast.MustParseTerm(a).Value, ast.MustParseTerm(b).Value
			if got, want := compare(Of(x), Of(y)), ast.Compare(x, y); got != want {
				t.Errorf("%s and %s: %d, want %d", a, b, got, want)
			}
			if same := string(Of(x).AppendKey(nil)) == string(Of(y).AppendKey(nil)); same != (a == b) {
				t.Errorf("the keys of %s and %s are the same: %t", a, b, same)
			}
		}
	}
	if Texts(map[string]string{"a": "b"}).Term().String() != `{"a": "b"}` || Counts(map[string]int64{"a": 1}).Term().String() != `{"a": 1}` {
		t.Error("maps of the input are other objects for Rego")
	}
}
