// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// printed is what vap prints for arguments, on both streams.
func printed(t *testing.T, args ...string) (policies []admissionv1.ValidatingAdmissionPolicy, bindings []admissionv1.ValidatingAdmissionPolicyBinding, aside string) {
	t.Helper()
	root := &cobra.Command{Use: "metalaw", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(Command("metalaw"))
	var out, complaints bytes.Buffer
	root.SetArgs(append([]string{"policy", "vap"}, args...))
	root.SetOut(&out)
	root.SetErr(&complaints)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err, complaints.String())
	}
	for _, document := range strings.Split(out.String(), "---\n")[1:] {
		if strings.Contains(document, "kind: ValidatingAdmissionPolicyBinding\n") {
			var b admissionv1.ValidatingAdmissionPolicyBinding
			if err := yaml.UnmarshalStrict([]byte(document), &b); err != nil {
				t.Fatal(err)
			}
			bindings = append(bindings, b)
			continue
		}
		var p admissionv1.ValidatingAdmissionPolicy
		if err := yaml.UnmarshalStrict([]byte(document), &p); err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	return policies, bindings, complaints.String()
}

func TestVAPPrintsWhatNeedsTheObjectAloneAndSaysWhatIsLeft(t *testing.T) {
	dir := begun(t, "default")
	if out, err := call(t, "", "add", dir, "images-per-namespace", "--set", `images={"shop": ["reg/os/*"]}`); err != nil {
		t.Fatal(err, out)
	}
	policies, bindings, aside := printed(t, "-f", dir)
	var got []string
	for i, p := range policies {
		got = append(got, p.Name+" "+string(bindings[i].Spec.ValidationActions[0]))
		for _, v := range p.Spec.Validations {
			got = append(got, "  "+v.Message)
		}
	}
	want := []string{
		"metalaw-serverclaim Deny",
		"  spec.ignitionSecretRef.name: write the name of a Secret in the claim's namespace, or leave ignitionSecretRef out",
		"  spec.userDataRef.name: write the name of a Secret in the claim's namespace, or leave userDataRef out",
		"  spec.tolerations: without a key it tolerates nothing; name the key, or use the operator Exists, which then tolerates every taint",
		"  spec.tolerations: the operator Exists tolerates every value; leave the value out, or use the operator Equal",
		`  metadata.annotations[policy.metalaw.dev/protect]: supported values: "true", "false"`,
		"metalaw-bundle-fleet-serverclaim Deny",
		"  spec.image: a claim needs an image to boot; name one in spec.image",
		"  spec.image: the image contains white space; write a reference such as registry.example.com/os/linux:1.2",
		"  spec.image: image-not-allowed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		"left to metalaw: its own rule, some server can satisfy the claim: it looks at the whole fleet\n",
		"left to metalaw: admission.rego:69: deny selector-key-empty: it reads the set or object selector_keys\n",
		"left to metalaw: all rules about other kinds than ServerClaim, and all of selection.rego\n",
	} {
		if !strings.Contains(aside, want) {
			t.Errorf("it does not say %q:\n%s", want, aside)
		}
	}
}

func TestVAPIsAskedWhereTheWebhookIs(t *testing.T) {
	text, err := os.ReadFile("../../../../config/webhook/validating.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var hooks admissionv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(text, &hooks); err != nil {
		t.Fatal(err)
	}
	policies, bindings, _ := printed(t)
	if len(policies) != 2 || len(bindings) != 2 {
		t.Fatalf("%d policies, %d bindings", len(policies), len(bindings))
	}
	plain := cmp.Transformer("spaces", func(text string) string {
		return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "'", `"`)
	})
	for _, hook := range hooks.Webhooks {
		if hook.Name != "serverclaim.validate.metalaw.dev" {
			continue
		}
		for _, p := range policies {
			if diff := cmp.Diff(hook.MatchConditions, p.Spec.MatchConditions, plain); diff != "" {
				t.Errorf("%s: %s", p.Name, diff)
			}
			if diff := cmp.Diff(hook.Rules[0], p.Spec.MatchConstraints.ResourceRules[0].RuleWithOperations); diff != "" || len(hook.Rules) != 1 {
				t.Errorf("%s: %s", p.Name, diff)
			}
			asked := []any{hook.NamespaceSelector, hook.ObjectSelector, hook.MatchPolicy}
			if diff := cmp.Diff(asked, []any{p.Spec.MatchConstraints.NamespaceSelector, p.Spec.MatchConstraints.ObjectSelector,
				p.Spec.MatchConstraints.MatchPolicy}); diff != "" || len(p.Spec.MatchConstraints.ExcludeResourceRules) > 0 {
				t.Errorf("%s: %s", p.Name, diff)
			}
			if *p.Spec.FailurePolicy != admissionv1.Ignore {
				t.Errorf("%s: an expression that fails refuses", p.Name)
			}
		}
		for _, b := range bindings {
			if b.Spec.MatchResources != nil || b.Spec.ParamRef != nil {
				t.Errorf("%s: it is asked about less than its policy", b.Name)
			}
		}
		return
	}
	t.Error("there is no such webhook")
}

func TestVAPNamesTheManagerAndQuotesWhatIsGiven(t *testing.T) {
	dir := begun(t, "default")
	edit(t, dir+"/admission.rego", "\"message\": \"a claim needs an image to boot; name one in spec.image\",\n\t\"field\": \"spec.image\"",
		"\"message\": sprintf(\"name an image, %s\", [input.kind]),\n\t\"field\": \"spec['image']\"")
	edit(t, dir+"/admission_test.rego", `d.field == "spec.image"`, `d.field == "spec['image']"`)
	out, err := call(t, "", "vap", "-f", dir, "--manager-user", `o'neill"\`)
	if err != nil {
		t.Fatal(err, out)
	}
	for _, want := range []string{
		"# Not asked about: what o'neill\"\\ writes. Another manager needs --manager-user.\n",
		`request.userInfo.username != "o'neill\"\\"`,
		`messageExpression: '"spec[''image'']: " + ("name an image, " + "ServerClaim"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %s:\n%s", want, out)
		}
	}
}

func TestVAPMarksAllThatItPrints(t *testing.T) {
	policies, bindings, _ := printed(t)
	var got []string
	for _, p := range policies {
		got = append(got, fmt.Sprint(p.Labels, " ", strings.HasPrefix(p.Annotations["policy.metalaw.dev/digest"], "sha256:")))
	}
	for _, b := range bindings {
		got = append(got, fmt.Sprint(b.Labels, " ", b.Annotations["policy.metalaw.dev/digest"] == policies[0].Annotations["policy.metalaw.dev/digest"]))
	}
	one := "map[app.kubernetes.io/part-of:metalaw policy.metalaw.dev/bundle:default policy.metalaw.dev/printed-by:policy-vap] true"
	if diff := cmp.Diff([]string{one, one, one, one}, got); diff != "" {
		t.Error(diff)
	}
}

func TestVAPPrintsNothingOfABundleThatIsNotAccepted(t *testing.T) {
	dir := begun(t, "default")
	edit(t, dir+"/admission.rego", "package metalaw.admission", "package metalaw.admision")
	if out, err := call(t, "", "vap", "-f", dir); err == nil || err.Error() != terminal.ErrIncomplete.Error() || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}
