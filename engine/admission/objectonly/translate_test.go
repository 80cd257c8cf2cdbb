// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
)

// evaluate is the value of an expression; the error is one of its evaluation.
func evaluate(t testing.TB, programs map[string]cel.Program, expression string, in map[string]any) (any, error) {
	t.Helper()
	if programs[expression] == nil {
		programs[expression] = program(t, expression)
	}
	out, _, err := programs[expression].Eval(in)
	if err != nil {
		return nil, err
	}
	return out.Value(), nil
}

func program(t testing.TB, expression string) cel.Program {
	t.Helper()
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	compiled, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(compiled)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// written is a file with the rules of a test.
func written(rules string) map[string][]byte {
	return map[string][]byte{"admission.rego": []byte("package metalaw.admission\n\n" + rules)}
}

func repository(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "..", pattern))
	if err != nil || len(names) == 0 {
		t.Fatal(pattern, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = data
	}
	return files
}

const absent = "it negates a call or a key of what may be absent; give that a name first, or read it by object.get"

const table = "teams := {\"a\": true}\n\n"

// doubling are rules of which each uses the one before it twice.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString("h0 if input.object.spec.image\n")
	for i := range n {
		fmt.Fprintf(&b, "\nh%d if {\n h%d == true\n h%d != false\n}\n", i+1, i, i)
	}
	return b.String() + "\n"
}

const head = `deny contains {"code": "c", "message": "m"} if `

func TestWhatIsTranslatedAndWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct{ rules, expression, left string }{
		"a field that is there": {head + `input.object.spec.power == "Off"`, `!(has(object.spec) && has(object.spec.power) && object.spec.power == "Off")`, ""},
		"a kind that is meant":  {head + "{\n input.kind == \"ServerClaim\"\n input.object.spec.power == \"Off\"\n}", `!(has(object.spec) && has(object.spec.power) && object.spec.power == "Off")`, ""},
		"another kind":          {head + `input.kind == "Server"`, "", "it concerns no ServerClaim"},
		"a label whose name is none of CEL's": {head + `input.object.metadata.labels["a/b"] == "c"`,
			`!(has(object.metadata) && has(object.metadata.labels) && "a/b" in object.metadata.labels && object.metadata.labels["a/b"] == "c")`, ""},
		"a field that may be absent": {head + `object.get(input.object, ["spec", "image"], "") == ""`, `!(object[?"spec"][?"image"].orValue("") == "")`, ""},
		"a helper rule with a default": {"default odd := false\n\nodd if input.object.spec.power == \"Off\"\n\n" + head + "not odd",
			`(has(object.spec) && has(object.spec.power) && object.spec.power == "Off")`, ""},
		"what is absent within not": {head + `not input.object.spec.power == "Off"`, "", absent},
		"a loop over what is a list": {head + "{\n some t in input.object.spec.tolerations\n t.key == \"k\"\n}",
			`!(has(object.spec) && has(object.spec.tolerations) && object.spec.tolerations.exists(x1, has(x1.key) && x1.key == "k"))`, ""},
		"a loop over what may be none":         {head + "{\n some t in input.object.spec.anything\n t == \"k\"\n}", "", `it asks for the key "anything", which the schema has not`},
		"facts":                                {head + "input.facts.satisfiable == false", "", "it reads input.facts, which only metalaw knows"},
		"a set of rules":                       {"keys contains \"a\" if input.object.a\n\n" + head + `"a" in keys`, "", "it reads the set or object keys"},
		"a comprehension":                      {head + "count([1 | input.object.spec]) > 0", "", "of arraycomprehension"},
		"a function that CEL has not":          {head + `lower(input.user.name) == "a"`, "", "it calls lower"},
		"with":                                 {"p if input.object.a\n\n" + head + "p with input as {}", "", "it uses with"},
		"every":                                {head + "every x in [1] {\n x == 1\n}", "", "it uses every"},
		"an element by its number":             {head + `input.object.spec.tolerations[0].key == "k"`, "", "it asks a list for its element 0"},
		"a key that may be absent, within not": {table + head + "not teams[input.object.metadata.labels.team]", "", absent},
		"a key that is there, within not": {table + head + "{\n input.object.metadata.labels.team\n not teams[input.object.metadata.labels.team]\n}",
			`!(has(object.metadata) && has(object.metadata.labels) && has(object.metadata.labels.team) && ` +
				`!(object.metadata.labels.team in {"a": true} && {"a": true}[object.metadata.labels.team]))`, ""},
		"a comparison of comparisons": {head + "{\n i := input.user.name == input.kind\n p := input.operation == \"CREATE\"\n not i == p\n}",
			`(request.userInfo.?username.orValue("") == "ServerClaim" == (request.operation == "CREATE"))`, ""},
		"a set that is asked for an element": {"banned := {\"x\", \"y\"}\n\n" + head + "banned[input.object.metadata.labels.team]",
			`!(has(object.metadata) && has(object.metadata.labels) && has(object.metadata.labels.team) && object.metadata.labels.team in ["x", "y"])`, ""},
		"a list that is asked for an element": {"names := [\"x\"]\n\n" + head + "names[input.object.metadata.generation]", "",
			"it asks a list for its element input.object.metadata.generation"},
		"a list that is asked for a key":     {head + `x := input.object.metadata.finalizers["a/b"]`, "", "it asks a list for its element \"a/b\""},
		"a set that is compared":             {head + `input.object.metadata.finalizers == {"a"}`, "", "it compares a set, a whole object or values of several kinds"},
		"a list that is not of its kind":     {head + `input.object.metadata.finalizers == "a"`, "", "it concerns no ServerClaim"},
		"metadata that metalaw sees less of": {head + `count(input.object.metadata) > 9`, "", "it counts what CEL counts in another way"},
		"an order of what has none":          {head + `input.object.spec.image < 1`, "", "it puts other values than two strings or two numbers in order"},
		"a field that the schema has not":    {head + `input.object.spec.colour == "red"`, "", `it asks for the key "colour", which the schema has not`},
		"a result as an argument":            {head + `startswith(input.kind, "S", false)`, "", "it calls startswith with its result as an argument"},
		"a number in a text":                 {head + `sprintf("%s", [input.object.metadata.generation]) == "1"`, "", "a text is made of what may be no string"},
		"%d":                                 {head + `sprintf("%d", [input.object.metadata.generation]) == "1"`, "", "a text is made by more than %s and %v of a list that is written out"},
		"a text that is not ASCII":           {head + `sprintf("é%s", [input.operation]) == "é"`, `!("é" + request.operation + "" == "é")`, ""},
		"a field that is computed": {`deny contains {"code": "c", "message": "m", "field": input.object.metadata.annotations.x} if input.object.spec`, "",
			"its field is not written out in its head"},
		"helper rules that double":                 {doubling(20) + head + "h20", "", tooLong},
		"helper rules that double and say nothing": {"h0 if true\n" + doubling(20)[len("h0 if input.object.spec.image\n"):] + head + "h20", "", tooLong},
		"a code that is made elsewhere":            {"deny contains d if d := {\"code\": \"c\", \"message\": \"m\"}", "", "its code and message are not written out in its head"},
	} {
		t.Run(name, func(t *testing.T) {
			rules, left := Translate(written(c.rules), "ServerClaim")
			got, why := "", ""

			if len(rules) > 0 {
				got = rules[0].Expression
			}
			if len(left) > 0 {
				why = left[0].Why
			}
			if diff := cmp.Diff([]string{c.expression, c.left}, []string{got, why}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheRulesOfTheDefaultBundle(t *testing.T) {
	rules, left := Translate(repository(t, "policies/bundles/default/*.rego"), "ServerClaim")
	var got []string
	for _, r := range rules {
		got = append(got, fmt.Sprintf("%s %t %s", r.Code, r.Warns, r.Field))
	}
	for _, l := range left {
		got = append(got, l.Rule+": "+l.Why)
	}
	want := []string{
		"image-missing false spec.image", "image-malformed false spec.image",
		"warn image-not-pinned: it calls minus", "deny selector-key-empty: it reads the set or object selector_keys",
		"warn selector-empty: it calls object.keys",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
