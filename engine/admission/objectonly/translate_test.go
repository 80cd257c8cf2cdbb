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
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/engine/admission"
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
		"what is absent within not": {head + `not input.object.spec.power == "Off"`, "", "it negates a call of what may be absent; give that a name first, or read it by object.get"},
		"a loop over what is a list": {head + "{\n some t in input.object.spec.tolerations\n t.key == \"k\"\n}",
			`!(has(object.spec) && has(object.spec.tolerations) && object.spec.tolerations.exists(x1, has(x1.key) && x1.key == "k"))`, ""},
		"a loop over what may be none":  {head + "{\n some t in input.object.spec.anything\n t == \"k\"\n}", "", "it goes over input.object.spec.anything, which may be no list"},
		"facts":                         {head + "input.facts.satisfiable == false", "", "it reads input.facts, which only metalaw knows"},
		"a set of rules":                {"keys contains \"a\" if input.object.a\n\n" + head + `"a" in keys`, "", "it reads the set or object keys"},
		"a comprehension":               {head + "count([1 | input.object.a]) > 0", "", "of arraycomprehension"},
		"a function that CEL has not":   {head + `lower(input.user.name) == "a"`, "", "it calls lower"},
		"with":                          {"p if input.object.a\n\n" + head + "p with input as {}", "", "it uses with"},
		"every":                         {head + "every x in [1] {\n x == 1\n}", "", "it uses every"},
		"an element by its number":      {head + `input.object.spec.tolerations[0].key == "k"`, "", "it asks for an element by its number"},
		"a code that is made elsewhere": {"deny contains d if d := {\"code\": \"c\", \"message\": \"m\"}", "", "its code and message are not written out in its head"},
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

// strange are the rules of a bundle that asks for much that can be absent or of another kind.
const strange = `
default free := false

free if input.user.name == "root"

free if "admins" in input.user.groups

size := "large" if input.object.spec.image == "a" else := "small" if input.object.spec.power == "On"

near(x, y) if startswith(x, y)

near("far", _) if true

changed if input.object.spec.image != object.get(input.oldObject, ["spec", "image"], "none")

deny contains {"code": "one", "message": "m"} if {
	not free
	size == "small"
	image := input.object.spec.image
	not near(image, "b")
}

deny contains {"code": "two", "message": sprintf("%s is %s", [input.object.metadata.namespace, size])} if {
	changed
	some t in input.object.spec.tolerations
	t.key != "k"
	not t.value
}

deny contains {"code": "three", "message": concat("-", ["a", trim_suffix(input.object.spec.image, "*")])} if {
	some word in {"a", "b*", "far"}
	input.object.spec.image == word
	input.operation in ["UPDATE", "CREATE"]
}

deny contains {"code": "four", "message": substring(input.object.spec.image, 0, 2)} if {
	count(trim_space(input.object.spec.image)) > 1
	input.object.metadata.labels.a
	input.object.spec.image > "a"
}
`

func TestNothingIsDeniedThatMetalawAdmits(t *testing.T) {
	library := repository(t, "policies/library/images-per-namespace/images-per-namespace.rego")
	library["admission.rego"] = []byte(`package metalaw.admission

deny contains {
	"code": "image-not-allowed",
	"message": data.metalaw.lib.images_per_namespace.words(namespace),
} if {
	input.kind == "ServerClaim"
	asked := object.get(input.object, ["spec", "image"], "")
	asked != object.get(input.oldObject, ["spec", "image"], "")
	namespace := input.object.metadata.namespace
	not data.metalaw.lib.images_per_namespace.allows(namespace, asked)
}
`)
	name := "images-per-namespace.rego"
	library[name] = []byte(strings.NewReplacer("images := {}", `images := {"a": ["a", "b*"], "b": []}`, `others := ["*"]`, `others := ["far", "*"]`).Replace(string(library[name])))
	for what, files := range map[string]map[string][]byte{
		"strange rules": written(strange), "the default bundle": repository(t, "policies/bundles/default/admission.rego"), "the library": library,
	} {
		t.Run(what, func(t *testing.T) {
			policy, found := admission.Compile(files)
			if policy == nil {
				t.Fatal(found)
			}
			rules, _ := Translate(files, "ServerClaim")
			if len(rules) == 0 {
				t.Fatal("nothing is translated")
			}
			programs, agreed := map[string]cel.Program{}, map[string]int{}
			rapid.Check(t, func(r *rapid.T) { agreed[hold(t, r, programs, policy, rules)]++ })
			if agreed["denied"] == 0 || agreed["passed"] == 0 {
				t.Errorf("the objects show little: %v", agreed)
			}
		})
	}
}

// hold holds the rules in CEL against those in Rego, for one object.
func hold(t *testing.T, r *rapid.T, programs map[string]cel.Program, policy *admission.Policy, rules []Rule) string {
	in := drawInput(r)
	verdict, failed := policy.Admit(t.Context(), in)
	says := map[string]string{}
	for _, d := range append(verdict.Denials, verdict.Warnings...) {
		says[d.Code] = d.Message
	}
	var old any
	if in.OldObject != nil {
		old = in.OldObject
	}
	vars := map[string]any{"object": in.Object, "oldObject": old, "request": map[string]any{"operation": in.Operation,
		"userInfo": map[string]any{"username": in.User.Name, "groups": in.User.Groups}}}
	outcome := "passed"
	for _, rule := range rules {
		value, err := evaluate(t, programs, rule.Expression, vars)
		passes, _ := value.(bool)
		message, denies := says[rule.Code]
		switch {
		case err == nil && !passes && failed == nil && !denies:
			r.Fatalf("%s denies what metalaw admits: %s\n%+v", rule.Code, rule.Expression, in)
		case err == nil && passes && denies:
			r.Fatalf("%s admits what metalaw denies: %s\n%+v", rule.Code, rule.Expression, in)
		case err != nil || passes || failed != nil:
			continue
		}
		outcome = "denied"
		words := any(rule.Message)
		if rule.MessageExpression != "" {
			if words, err = evaluate(t, programs, rule.MessageExpression, vars); err != nil {
				r.Fatal(err)
			}
		}
		if words != message {
			r.Fatalf("%s says %q, and metalaw %q", rule.Code, words, message)
		}
	}
	return outcome
}

func drawInput(r *rapid.T) admission.Input {
	image := rapid.SampledFrom([]any{"a", "b", "b*", "bc", "far", "", " ", " b\t", "\u2003", "x y", "b..c", int64(1), false, nil})
	object := func(name string) map[string]any {
		spec := map[string]any{}
		if rapid.IntRange(0, 4).Draw(r, name+" has an image") > 0 {
			spec["image"] = image.Draw(r, name+" image")
		}
		if power := rapid.SampledFrom([]string{"On", "Off", ""}).Draw(r, "power"); power != "" {
			spec["power"] = power
		}
		var tolerations []any
		for range rapid.IntRange(0, 2).Draw(r, "tolerations") {
			one := map[string]any{}
			for _, key := range []string{"key", "value"} {
				if word := rapid.SampledFrom([]any{nil, "k", "x", false}).Draw(r, key); word != nil {
					one[key] = word
				}
			}
			tolerations = append(tolerations, one)
		}
		if tolerations != nil {
			spec["tolerations"] = tolerations
		}
		metadata := map[string]any{"name": "c", "namespace": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "namespace")}
		if rapid.Bool().Draw(r, "labelled") {
			metadata["labels"] = map[string]any{rapid.SampledFrom([]string{"a", "b"}).Draw(r, "label"): rapid.SampledFrom([]any{"v", "", false}).Draw(r, "value")}
		}
		if rapid.IntRange(0, 9).Draw(r, "without a spec") == 0 {
			return map[string]any{"metadata": metadata}
		}
		return map[string]any{"metadata": metadata, "spec": spec}
	}
	in := admission.Input{Operation: "CREATE", Kind: "ServerClaim", Object: object("new"),
		User: admission.User{Name: rapid.SampledFrom([]string{"root", "jane"}).Draw(r, "user"), Groups: rapid.SliceOfN(rapid.SampledFrom([]string{"admins", "x"}), 0, 2).Draw(r, "groups")}}
	if rapid.Bool().Draw(r, "update") {
		in.Operation, in.OldObject = "UPDATE", object("old")
	}
	return in
}
