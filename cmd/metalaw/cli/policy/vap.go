// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/policy/source"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/admission/objectonly"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/webhooks"
)

// What all printed objects bear.
const (
	printedLabel     = "policy.metalaw.dev/printed-by"
	printedValue     = "policy-vap"
	digestAnnotation = "policy.metalaw.dev/digest"
)

// allowed is a kind as kubectl's --prune-allowlist takes it.
func allowed(kind string) string { return admissionv1.SchemeGroupVersion.String() + "/" + kind }

func vapCommand() *cobra.Command {
	var from source.Flags
	manager := webhooks.ManagerUser
	cmd := &cobra.Command{
		Use:   "vap [-f DIR|FILE|-]",
		Short: "Print what a bundle refuses by the object alone as ValidatingAdmissionPolicies",
		Long: "Prints ValidatingAdmissionPolicies of Kubernetes, with their bindings, for the rules about ServerClaims that need only the " +
			"object: metalaw's own, " +
			"and those of the bundle's admission.rego. The API server then refuses such a claim by itself, with the same message, also " +
			"while no manager answers. " +
			"They never refuse what metalaw admits: they are asked where the webhook is asked, so not about the manager's own writes, and an " +
			"expression that fails refuses nothing. Rules that need more, such as the fleet, are listed on the standard error, each with " +
			"the reason; the webhook goes on asking all " +
			"of them. The policies are those of the bundle that is given, and do not follow a promotion: print and apply them anew with " +
			"it. All bear the label " + printedLabel + "=" + printedValue + ", by which kubectl apply --prune takes away what an earlier bundle " +
			"had and this one has not; the annotation " + digestAnnotation + " says which content they were made of.\n\n" +
			"Exit codes: 0 printed; 1 the bundle would not be accepted; 2 the command line makes no sense.",
		Example: "  {{.}} policy vap -f ./fleet >fleet-vap.yaml\n  {{.}} policy vap -f ./fleet | kubectl apply -f - --prune -l " +
			printedLabel + "=" + printedValue + " \\\n    --prune-allowlist=" + allowed("ValidatingAdmissionPolicy") +
			" \\\n    --prune-allowlist=" + allowed("ValidatingAdmissionPolicyBinding"),
		Args: usage.NoArgs,
	}
	from.Register(cmd)
	cmd.Flags().StringVar(&manager, "manager-user", manager, "user name of the manager, whose own writes are not asked about")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t := terminal.Of(cmd)
		if from.Path == "" && from.Shipped == "" {
			from.Shipped = policies.DefaultBundle
		}
		m, err := from.Read(cmd.Context(), cmd.InOrStdin())
		if err != nil {
			return err
		}
		b, report, err := policies.Accept(cmd.Context(), m.Files)
		if err != nil {
			return err
		}
		if b == nil {
			if err := (verdict{Bundle: m, report: report}).text(&terminal.Terminal{Out: cmd.ErrOrStderr()}, false); err != nil {
				return err
			}
			return terminal.ErrIncomplete
		}
		return printPolicies(t.Out, cmd.ErrOrStderr(), b, manager)
	}
	return cmd
}

// printPolicies writes the policies to one stream, and what is left to another.
func printPolicies(out, aside io.Writer, b *bundle.Bundle, manager string) error {
	rules, left := objectonly.Translate(b.Files, "ServerClaim")
	var denials, warnings []objectonly.Rule
	for _, rule := range rules {
		if rule.Warns {
			warnings = append(warnings, rule)
		} else {
			denials = append(denials, rule)
		}
	}
	if _, err := fmt.Fprintf(out, "# What bundle %s %s refuses of a ServerClaim by the object alone; printed by metalaw policy vap.\n"+
		"# Not asked about: what %s writes. Another manager needs --manager-user.\n", b.Name, b.Version, manager); err != nil {
		return err
	}
	for _, one := range []struct {
		name   string
		rules  []objectonly.Rule
		action admissionv1.ValidationAction
	}{
		{"metalaw-serverclaim", webhooks.ObjectRules(), admissionv1.Deny},
		{"metalaw-bundle-" + b.Name + "-serverclaim", denials, admissionv1.Deny},
		{"metalaw-bundle-" + b.Name + "-serverclaim-warn", warnings, admissionv1.Warn},
	} {
		if len(one.rules) == 0 {
			continue
		}
		meta := metav1.ObjectMeta{Name: one.name, Annotations: map[string]string{digestAnnotation: b.Revision.Digest},
			Labels: map[string]string{"app.kubernetes.io/part-of": "metalaw", printedLabel: printedValue, policyv1alpha1.BundleLabel: b.Name}}
		for _, object := range []any{policyOf(meta, one.rules, manager), bindingOf(meta, one.action)} {
			text, err := yaml.Marshal(object)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(out, "---\n%s", strings.ReplaceAll(string(text), "  creationTimestamp: null\n", "")); err != nil {
				return err
			}
		}
	}
	for _, l := range webhooks.ObjectRulesLeft() {
		if _, err := fmt.Fprintf(aside, "left to metalaw: its own rule, %s: %s\n", l.Rule, l.Why); err != nil {
			return err
		}
	}
	for _, l := range left {
		if _, err := fmt.Fprintf(aside, "left to metalaw: %s:%d: %s: %s\n", l.File, l.Line, l.Rule, l.Why); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(aside, "left to metalaw: all rules about other kinds than ServerClaim, and all of selection.rego")
	return err
}

// policyOf is asked where the webhook for claims is asked; a test holds the two together.
func policyOf(meta metav1.ObjectMeta, rules []objectonly.Rule, manager string) *admissionv1.ValidatingAdmissionPolicy {
	p := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Ignore),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: claimWrites()}}},
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "not-the-manager", Expression: "request.userInfo.username != " + objectonly.Quoted(manager)},
				{Name: "spec-or-what-is-asked-by-annotation-changes", Expression: claimChanges},
			},
		},
	}
	for _, rule := range rules {
		message, expression := rule.Words()
		v := admissionv1.Validation{Expression: rule.Expression, Message: message, MessageExpression: expression,
			Reason: ptr.To(metav1.StatusReasonInvalid)}
		p.Spec.Validations = append(p.Spec.Validations, v)
	}
	return p
}

// claimWrites are the requests about which the webhook for claims is asked.
func claimWrites() admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule: admissionv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{v1alpha1.GroupVersion.Version},
			Resources: []string{"serverclaims"}, Scope: ptr.To(admissionv1.NamespacedScope)},
	}
}

// claimChanges is when the webhook for claims is asked.
const claimChanges = `request.operation == 'CREATE' || object.spec != oldObject.spec ` +
	`|| object.metadata.?annotations[?'policy.metalaw.dev/protect'] != oldObject.metadata.?annotations[?'policy.metalaw.dev/protect'] ` +
	`|| object.metadata.?annotations[?'policy.metalaw.dev/priority'].orValue('') ` +
	`!= oldObject.metadata.?annotations[?'policy.metalaw.dev/priority'].orValue('') ` +
	`|| object.metadata.?annotations[?'policy.metalaw.dev/placement'] != oldObject.metadata.?annotations[?'policy.metalaw.dev/placement'] ` +
	`|| object.metadata.?annotations.orValue({}).exists(k, k.startsWith('policy.metalaw.dev/') ` +
	`&& !(k in oldObject.metadata.?annotations.orValue({})))`

func bindingOf(meta metav1.ObjectMeta, action admissionv1.ValidationAction) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{action}},
	}
}
