// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

const defaultBundle = "../../policies/bundles/default/"

// bundled reads files of the default bundle.
func bundled(t testing.TB, names ...string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(defaultBundle + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	return files
}

func compiled(t testing.TB, files map[string][]byte) *Policy {
	t.Helper()
	policy, found := Compile(files)
	if policy == nil {
		t.Fatal(found.Err())
	}
	return policy
}

func rego(body string) map[string][]byte {
	return map[string][]byte{"admission.rego": []byte("package metalaw.admission\n" + body)}
}

func TestDefaultPolicyHoldsItsOwnTests(t *testing.T) {
	report, found := RunTests(t.Context(), bundled(t, "admission.rego", "admission_test.rego"))
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	failed := func(result regosandbox.TestResult) bool { return !result.Passed }
	all := report.Files["admission.rego"]
	if len(report.Results) != 10 || slices.ContainsFunc(report.Results, failed) || all.Covered != all.All || all.All == 0 {
		t.Errorf("%+v", report)
	}
}

func TestAdmitReturnsDenialsAndWarningsInOrder(t *testing.T) {
	policy := compiled(t, rego(`
deny contains {"code": "b", "message": "second"} if input.operation == "CREATE"
deny contains {"code": "a", "message": "first", "field": "spec.image"} if input.object.spec.image == "x"
warn contains {"code": "w", "message": sprintf("%s of %s is %v", [input.kind, input.user.name, input.facts.free])}
`))
	got, err := policy.Admit(t.Context(), Input{Operation: "CREATE", Kind: "ServerClaim", User: User{Name: "jane"},
		Object: map[string]any{"spec": map[string]any{"image": "x"}}, Facts: map[string]any{"free": int64(3)}})
	want := Verdict{
		Denials:  []Finding{{"a", "first", "spec.image"}, {"b", "second", ""}},
		Warnings: []Finding{{"w", "ServerClaim of jane is 3", ""}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestOnlyWhatFollowsFromTheObjectIsAskedAgain(t *testing.T) {
	files := rego(`
import data.metalaw.lib

deny contains {"code": "image", "message": "m"} if input.object.spec.image == "x"
deny contains {"code": "operation", "message": "m"} if input.operation == "CREATE"
deny contains {"code": "user", "message": "m"} if input.user.name != "admin"
deny contains {"code": "helper", "message": "m"} if not is_admin
deny contains {"code": "function", "message": "m"} if not in_group(input, "admins")
deny contains {"code": "library", "message": "m"} if not lib.known
deny contains {"code": "former", "message": "m"} if not input.oldObject.spec
deny contains {"code": "facts", "message": "m"} if not input.facts.free
warn contains {"code": "warned", "message": "m"} if input.kind == "ServerClaim"

is_admin if "admins" in input.user.groups

in_group(who, group) if group in who.user.groups
`)
	files["lib.rego"] = []byte("package metalaw.lib\n\nknown if input.user.name == \"admin\"\n")
	policy := compiled(t, files)
	got, err := policy.Standing(t.Context(), "ServerClaim", map[string]any{"spec": map[string]any{"image": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Finding{{"image", "m", ""}, {"operation", "m", ""}}, got); diff != "" {
		t.Error(diff)
	}
	verdict, err := policy.Admit(t.Context(), Input{Operation: "CREATE", Kind: "ServerClaim", Object: map[string]any{"spec": map[string]any{"image": "x"}}})
	if err != nil || len(verdict.Denials) != 8 {
		t.Errorf("%v, %v", verdict.Denials, err)
	}
}

func TestWhatStandsIsAskedWithoutTheRestOfThePolicy(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []Finding
	}{
		"no denial is left, and another rule asks for them": {
			"deny contains {\"code\": \"user\", \"message\": \"m\"} if input.user.name != \"admin\"\n" +
				"allow if count(deny) == 0\nwarn contains {\"code\": \"a\", \"message\": \"m\"} if allow\n", nil},
		"a warning fails without a user": {
			"deny contains {\"code\": \"kind\", \"message\": \"m\"} if input.kind == \"ServerClaim\"\n" +
				"warn contains {\"code\": \"a\", \"message\": \"m\"} if to_number(input.user.name) > 1\n", []Finding{{"kind", "m", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := compiled(t, rego(c.body)).Standing(t.Context(), "ServerClaim", map[string]any{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARuleThatHandsTheInputOnIsAskedAgainWhereItCanBeKnownWhatItReads(t *testing.T) {
	const because = " a claim that is stored while no manager answers is not held to it"
	const whole = "warning: deny: only admission asks this rule, because it hands the whole input on, so that metalaw cannot tell what it reads. " +
		"A claim that is stored while no manager answers is not held to it" +
		" (hand on input.object, or what of it the rule needs) [rego-input-whole]"
	const more = " (where that is not enough, refuse what the claim itself says in a rule of its own) [rego-admission-only]"
	for name, c := range map[string]struct {
		body  string
		asked bool
		says  string
	}{
		"by a name": {body: "deny contains {\"code\": \"a\", \"message\": \"m\"} if {\n\treq := input\n\treq.object.spec.image == \"x\"\n}", asked: true},
		"by object.get": {
			body: `deny contains {"code": "a", "message": "m"} if object.get(input, ["object", "spec", "image"], "") == "x"`, asked: true},
		"by a function": {
			body: "bad(req) if req.object.spec.image == \"x\"\ndeny contains {\"code\": \"a\", \"message\": \"m\"} if bad(input)", asked: true},
		"by a message": {
			body: "deny contains {\"code\": \"a\", \"message\": m} if {\n\treq := input\n\treq.object.spec.image == \"x\"\n\tm := sprintf(\"%s\", [req.operation])\n}", asked: true},
		"by a name, and reads who asks": {
			body: "deny contains {\"code\": \"a\", \"message\": \"m\"} if {\n\treq := input\n\treq.user.name != \"admin\"\n}",
			says: "admission.rego:2:1: info: deny: only admission asks this rule, because it reads input.user;" + because + more},
		"by a function that reads what was and what is known": {
			body: "bad(req) if req.oldObject.spec.image == req.facts.x\ndeny contains {\"code\": \"a\", \"message\": \"m\"} if bad(input)",
			says: "admission.rego:3:1: info: deny: only admission asks this rule, because it reads input.facts and input.oldObject;" + because + more},
		"to a function of Rego": {
			body: `deny contains {"code": "a", "message": "m"} if count(input) > 5`, says: "admission.rego:2:54: " + whole},
		"by a key that is not known": {
			body: "deny contains {\"code\": \"a\", \"message\": \"m\"} if {\n\tsome part in [\"object\"]\n\tinput[part].spec.image == \"x\"\n}", says: "admission.rego:4:2: " + whole},
	} {
		t.Run(name, func(t *testing.T) {
			policy, found := Compile(rego(c.body))
			if policy == nil {
				t.Fatal(found.Err())
			}
			got := ""
			for _, d := range found {
				got += d.String()
			}
			if got != c.says {
				t.Errorf("got  %s\nwant %s", got, c.says)
			}
			denials, err := policy.Standing(t.Context(), "ServerClaim", map[string]any{"spec": map[string]any{"image": "x"}})
			if asked := len(denials) == 1; err != nil || asked != c.asked {
				t.Errorf("it is asked %t, %v %v", asked, denials, err)
			}
		})
	}
}

func TestRulesThatCannotBeToldApartForbidNothingAndSaySo(t *testing.T) {
	policy := &Policy{apart: errors.New("why")}
	if got, err := policy.Standing(t.Context(), "ServerClaim", nil); len(got) > 0 || err == nil || err.Error() != "admission: why" {
		t.Error(got, err)
	}
}

func TestAPolicyWithoutRulesAdmitsEverything(t *testing.T) {
	for name, files := range map[string]map[string][]byte{
		"no file": {}, "an empty package": rego(""), "only selection": {"selection.rego": []byte("package metalaw.selection\nallow := true\n")},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := compiled(t, files).Admit(t.Context(), Input{}); err != nil || len(got.Denials)+len(got.Warnings) != 0 {
				t.Error(got, err)
			}
		})
	}
}

func TestAFailingRuleIsAnErrorAndNoVerdict(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"a built-in function fails":     {"deny contains {\"code\": \"a\", \"message\": \"m\"} if {\n\tto_number(input.object.spec.image) > 1\n}", "admission.rego:3:2: rule deny: to_number: strconv.ParseFloat: parsing \"one\": invalid syntax"},
		"a message is no string":        {`deny contains {"code": "a", "message": input.object.spec}`, "rule deny: contains an object whose message is not a string"},
		"a code written out is no word": {`deny contains {"code": "Old_Image", "message": "m"}`, `rule deny: contains the code "Old_Image"; a code is 1 to 63`},
		"a code is no word":             {`deny contains {"code": input.kind, "message": "m"}`, `rule deny: contains the code "Server Claim"; a code is 1 to 63 lower-case letters, digits and dashes`},
		"an element is no object":       {`warn contains input.kind`, "rule warn: contains something else than an object with code and message"},
		"a message is missing":          {"deny contains m if m := object.filter({\"code\": \"a\", \"message\": \"m\"}, [\"code\"])", "rule deny: contains a message of 0 bytes for code a"},
		"a rule says too much":          {`deny contains {"code": "a", "message": m} if some m in input.facts.many`, "rule deny: has 33 elements and at most 32 are read"},
		"two rules disagree":            {"x := 1 if input.kind\nx := 2 if input.kind\nwarn contains {\"code\": \"a\", \"message\": \"m\"} if x", "rule x: rule data.metalaw.admission.x produced conflicting values: 1 at admission.rego:2 2 at admission.rego:3"},
	} {
		t.Run(name, func(t *testing.T) {
			many := []any{}
			for i := range 33 {
				many = append(many, strings.Repeat("m", i+1))
			}
			got, err := compiled(t, rego(c.body)).Admit(t.Context(), Input{Kind: "Server Claim",
				Object: map[string]any{"spec": map[string]any{"image": "one"}}, Facts: map[string]any{"many": many}})
			var evalErr *EvalError
			if !errors.As(err, &evalErr) || !strings.Contains(err.Error(), c.says) || len(got.Denials)+len(got.Warnings) != 0 {
				t.Errorf("got %+v, %v; want an error with %q", got, err, c.says)
			}
		})
	}
}

func TestAnOversizedRequestIsRefused(t *testing.T) {
	_, err := compiled(t, rego("")).Admit(t.Context(), Input{Object: map[string]any{"a": []any{strings.Repeat("x", maxInputBytes)}}})
	if err == nil || !strings.Contains(err.Error(), "at most 4194304 are read") {
		t.Error(err)
	}
}

func TestAnUnknownInputFieldDoesNotCompile(t *testing.T) {
	_, found := Compile(rego("warn contains {\"code\": \"a\", \"message\": \"m\"} if input.user.nam == \"x\"\n"))
	want := "admission.rego:2:48: error: warn: input.user.nam does not exist (there are name, groups) [rego-type]"
	if len(found) != 1 || found[0].String() != want {
		t.Errorf("got %v, want %s", found, want)
	}
}

func BenchmarkAdmit(b *testing.B) {
	policy := compiled(b, bundled(b, "admission.rego"))
	in := Input{Operation: "CREATE", Kind: "ServerClaim", User: User{"jane", []string{"team"}}, Object: map[string]any{
		"metadata": map[string]any{"namespace": "team", "name": "c"},
		"spec": map[string]any{"power": "On", "image": "registry.example.com/os/linux:1.2", "serverSelector": map[string]any{
			"matchLabels": map[string]any{"rack": "r1"}}},
	}}
	b.ReportAllocs()
	for b.Loop() {
		if v, err := policy.Admit(b.Context(), in); err != nil || len(v.Denials) > 0 {
			b.Fatal(v, err)
		}
	}
}
