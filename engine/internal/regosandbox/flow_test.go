// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
)

func TestWhatARuleReadsOfTheInput(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"by a reference":                                   {`ok if input.name == "a"`, []string{"name"}},
		"by an import":                                     {"import input.labels as l\nok if l.zone == \"a\"", []string{"labels.zone"}},
		"of which it gives a name":                         {"ok if {\n\treq := input\n\treq.labels.zone == \"a\"\n}", []string{"labels.zone"}},
		"of whose name it gives one":                       {"ok if {\n\treq := input\n\tl := req.labels\n\tl.zone == \"a\"\n}", []string{"labels"}},
		"of which it unifies a name":                       {"ok if {\n\tsome req\n\treq = input\n\treq.open\n}", []string{"open"}},
		"by object.get":                                    {`ok if object.get(input, ["labels", "zone"], "") == "a"`, []string{"labels.zone"}},
		"by object.get with one key":                       {`ok if object.get(input, "name", "") == "a"`, []string{"name"}},
		"by object.get of a name":                          {"ok if {\n\treq := input\n\tobject.get(req, [\"labels\", \"zone\"], req.name) == \"a\"\n}", []string{"labels.zone", "name"}},
		"by object.get with keys that are not written out": {`ok if object.get(input, [input.name], "") == "a"`, []string{"*", "name"}},
		"by a function":                                    {"helper(req) if req.open\nok if helper(input)", []string{"open"}},
		"by a function of a function":                      {"inner(l) if l.zone == \"a\"\nhelper(req) if inner(req.labels)\nok if helper(input)", []string{"labels"}},
		"by a function with a value":                       {"helper(req) := req.name\nok if helper(input) == \"a\"", []string{"name"}},
		"by a function that is not so":                     {"helper(req) if req.open\nok if not helper(input)", []string{"open"}},
		"by a function that reads more":                    {"helper(x) if input.name == x\nok if helper(\"a\")", []string{"name"}},
		"by a function's other body":                       {"helper(req) if req.open\nhelper(req) if req.size > 1\nok if helper(input)", []string{"open", "size"}},
		"by an else":                                       {"helper(req) := 1 if req.open\nelse := 2 if req.size > 1\nok if helper(input) == 2", []string{"open", "size"}},
		"in a comprehension":                               {"ok if {\n\treq := input\n\tcount([p | some p in req.parts]) > 1\n}", []string{"parts"}},
		"in every":                                         {"ok if {\n\treq := input\n\tevery p in req.parts { p.name == req.name }\n}", []string{"name", "parts"}},
		"by a rule that it uses":                           {"other if {\n\treq := input\n\treq.open\n}\nok if other", []string{"open"}},
		"by a key that is not known":                       {"ok if {\n\tsome k\n\tinput[k] == \"a\"\n}", []string{"*"}},
		"handed to a function of Rego":                     {"ok if count(input) > 1", []string{"*"}},
		"within a list":                                    {"ok if {\n\tsome req in [input]\n\treq.open\n}", []string{"*"}},
		"by a name that is handed on":                      {"ok if {\n\treq := input\n\tcount(req) > 1\n}", []string{"*"}},
		"by a function under with":                         {"helper(req) if req.open\nok if helper(input) with input.name as \"a\"", []string{"*", "name"}},
		"by what stands in its place":                      {"helper(req) if req.open\nother(req) if req.size > 1\nok if helper(input) with helper as other", []string{"*"}},
		"by a function that is exchanged":                  {"helper(x) if x == input.name\nother(x) if x == input.color\nok if helper(\"a\") with helper as other", []string{"color", "name"}},
		"by a rule that is the input":                      {"whole := input\nok if whole.open", []string{"*"}},
		"by a function that returns it":                    {"same(x) := x\nok if same(input).open", []string{"*"}},
		"by an import of all of it":                        {"import input as req\nok if req.open", []string{"open"}},
		"by a pattern":                                     {"ok if {\n\t[req, _] = [input, 1]\n\treq.open\n}", []string{"*"}},
		"by two names":                                     {"ok if {\n\ta := input\n\tb := a\n\tb.open\n}", []string{"open"}},
		"that there is a part of it":                       {"ok if {\n\t_ = input.name\n}", []string{"name"}},
		"by a comparison with a parameter":                 {"helper(x) if {\n\treq := input\n\tx == req\n}\nok if helper(input)", []string{"*"}},
		"nothing":                                          {"ok := true", nil},
		"by a function with a pattern":                     {"helper({\"zone\": z}) if z == \"a\"\nok if helper(input.labels)", []string{"labels"}},
		"by a function of two parts of it":                 {"helper(a, b) if a.zone == b\nok if helper(input.labels, input.name)", []string{"labels", "name"}},
	} {
		t.Run(name, func(t *testing.T) {
			module, found := Compile(testSpec(), policy(c.body+"\n"))
			if module == nil {
				t.Fatal(found.Err())
			}
			var got []string
			for _, rule := range rulesNamed("metalaw.p", "ok", module.compiler.Modules) {
				module.reads(rule, func(path []string, at *ast.Location) {
					if at == nil {
						t.Errorf("%v is read nowhere", path)
					}
					if len(path) == 0 {
						path = []string{"*"}
					}
					got = append(got, strings.Join(path, "."))
				})
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, slices.Compact(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
