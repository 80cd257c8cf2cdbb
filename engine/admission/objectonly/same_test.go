// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/engine/admission"
)

// strange are the rules of a bundle that asks for much that can be absent.
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

func TestBundlesRefuseTheSameInCEL(t *testing.T) {
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
			programs, outcomes := map[string]cel.Program{}, map[string]int{}
			rapid.Check(t, func(r *rapid.T) { outcomes[hold(t, r, programs, policy, rules, drawInput(r))]++ })
			if outcomes["denied"] == 0 || outcomes["passed"] == 0 {
				t.Errorf("the objects show little: %v", outcomes)
			}
		})
	}
}

// TestAnyRuleRefusesTheSameInCELOrIsLeft draws the rules as well, and what they are made of.
func TestAnyRuleRefusesTheSameInCELOrIsLeft(t *testing.T) {
	outcomes := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		for range 10 {
			rules := drawRules(r)
			r.Log(rules)
			files := written(rules)
			policy, _ := admission.Compile(files)
			if policy == nil {
				outcomes["no policy"]++
				continue
			}
			translated, _ := Translate(files, "ServerClaim")
			if len(translated) == 0 {
				outcomes["left"]++
				continue
			}
			outcomes["translated"]++
			programs := map[string]cel.Program{}
			for range 8 {
				outcomes[hold(t, r, programs, policy, translated, drawInput(r))]++
			}
		}
	})
	t.Log(outcomes)
	for _, what := range []string{"translated", "denied", "passed"} {
		if outcomes[what] < 50 {
			t.Errorf("the rules show little: %v", outcomes)
		}
	}
}

// hold holds the rules in CEL against those in Rego, for one object: what Rego denies CEL denies in the same words, and nothing else.
// Where a rule of Rego fails metalaw refuses the object, so that CEL may do either.
func hold(t *testing.T, r *rapid.T, programs map[string]cel.Program, policy *admission.Policy, rules []Rule, in admission.Input) string {
	asked := in // as the webhook asks
	asked.Object, asked.OldObject = withoutManagedFields(in.Object), withoutManagedFields(in.OldObject)
	verdict, failed := policy.Admit(t.Context(), asked)
	if failed != nil {
		return "failed"
	}
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
		case err != nil && denies:
			r.Fatalf("%s fails where metalaw denies: %s: %v\n%+v", rule.Code, rule.Expression, err, in)
		case err == nil && !passes && !denies:
			r.Fatalf("%s denies what metalaw admits: %s\n%+v", rule.Code, rule.Expression, in)
		case err == nil && passes && denies:
			r.Fatalf("%s admits what metalaw denies: %s\n%+v", rule.Code, rule.Expression, in)
		case err != nil || passes:
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

func withoutManagedFields(object map[string]any) map[string]any {
	object = maps.Clone(object)
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		object["metadata"] = metadata
	}
	return object
}

// drawInput draws what the schema of a ServerClaim lets pass.
func drawInput(r *rapid.T) admission.Input {
	image := rapid.SampledFrom([]string{"a", "b", "b*", "bc", "bé", "é", "far", "", " ", " b\t", "\u2003", "x y", "b..c"})
	word := rapid.SampledFrom([]string{"", "a", "x", "é", "k"})
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
			for _, key := range []string{"key", "value", "operator", "effect"} {
				if rapid.Bool().Draw(r, "has a "+key) {
					one[key] = word.Draw(r, key)
				}
			}
			tolerations = append(tolerations, one)
		}
		if tolerations != nil {
			spec["tolerations"] = tolerations
		}
		if rapid.Bool().Draw(r, "selects") {
			spec["serverSelector"] = map[string]any{"matchLabels": map[string]any{"team": word.Draw(r, "team")}}
		}
		metadata := map[string]any{"name": "c", "namespace": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "namespace"),
			"generation": int64(rapid.IntRange(1, 3).Draw(r, "generation")), "managedFields": []any{map[string]any{"manager": word.Draw(r, "manager")}}}
		if rapid.Bool().Draw(r, "labelled") {
			metadata["labels"] = map[string]any{rapid.SampledFrom([]string{"a", "b", "team", "a/b"}).Draw(r, "label"): word.Draw(r, "value")}
		}
		if rapid.Bool().Draw(r, "final") {
			metadata["finalizers"] = []any{word.Draw(r, "finalizer"), "a"}[:rapid.IntRange(0, 2).Draw(r, "finalizers")]
		}
		if rapid.IntRange(0, 9).Draw(r, "without a spec") == 0 {
			return map[string]any{"metadata": metadata}
		}
		return map[string]any{"metadata": metadata, "spec": spec}
	}
	in := admission.Input{Operation: "CREATE", Kind: "ServerClaim", Object: object("new"),
		User: admission.User{Name: rapid.SampledFrom([]string{"root", "jane"}).Draw(r, "user"), Groups: rapid.SliceOfN(rapid.SampledFrom([]string{"admins", "x", "a"}), 0, 2).Draw(r, "groups")}}
	if rapid.Bool().Draw(r, "update") {
		in.Operation, in.OldObject = "UPDATE", object("old")
	}
	return in
}
