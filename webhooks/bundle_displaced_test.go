// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Who may activate bundle fleet alone does not take servers from a bundle of another name.
func TestWhoLetsABundleGovernInThePlaceOfAnother(t *testing.T) {
	head := bundleHead(staged("shadow"))
	another := func(change ...func(*policyv1alpha1.PolicyRevision)) *policyv1alpha1.PolicyRevision {
		return revisionOf(t, bundleHead(holds("lifecycle.yaml", "other")), append([]func(*policyv1alpha1.PolicyRevision){
			func(r *policyv1alpha1.PolicyRevision) { r.Name, r.Spec.Bundle = "prod-1.0.0-0123456789", "prod" }}, change...)...)
	}
	builtIn := func(r *policyv1alpha1.PolicyRevision) { r.Spec.Source = nil }
	waits := func(r *policyv1alpha1.PolicyRevision) {
		r.Status.LabelledStage = policyv1alpha1.LabelledActive
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: policyv1alpha1.ConditionActive, Status: metav1.ConditionFalse,
			Reason: policyv1alpha1.ReasonAwaitingReplicas})
	}
	active, canary := bundleHead(staged("active"), activated), bundleHead(staged("canary"), rackCanary, activated)
	wide := bundleHead(staged("canary"), noted(policyv1alpha1.CanaryPercentAnnotation, "50"), activated)
	mayNotProd := strings.Replace(mayNotFleet, `bundle "fleet"`, `bundle "prod"`, 1) + "; its revision prod-1.0.0-0123456789 is in force, or about to be, and "
	instead, takesFrom := `bundle "fleet" would govern in its place`, `a canary of bundle "fleet" takes servers from it`
	for name, c := range map[string]struct {
		stored        *policyv1alpha1.PolicyRevision
		before, after *corev1.ConfigMap
		want          string
	}{
		"one that was promoted":                               {another(promoted("7")), head, active, "Forbidden\n" + stageField + mayNotProd + instead},
		"one whose status says it":                            {another(atStage(policyv1alpha1.StageActive)), head, active, "Forbidden\n" + stageField + mayNotProd + instead},
		"one that waits for a manager":                        {another(waits), head, active, "Forbidden\n" + stageField + mayNotProd + instead},
		"by a ConfigMap that is new":                          {another(promoted("7")), nil, active, "Forbidden\n" + stageField + mayNotProd + instead},
		"by a canary":                                         {another(promoted("7")), head, canary, "Forbidden\n" + stageField + mayNotProd + takesFrom},
		"by a wider canary":                                   {another(promoted("7")), canary, wide, "Forbidden\nmetadata.annotations[policy.metalaw.dev/servers]: " + mayNotProd + takesFrom},
		"one that comes from a backup, while nothing governs": {another(promotion("7")), head, active, "Forbidden\n" + stageField + mayNotProd + instead},
		"not as a shadow":                                     {another(promoted("7")), nil, head, ""},
		"not where its canary ends":                           {another(promoted("7")), canary, bundleHead(staged("shadow"), activated), ""},
		"not where it was superseded":                         {another(atStage(policyv1alpha1.StageSuperseded)), head, active, ""},
		"not of the built-in one":                             {another(promoted("1"), builtIn), head, active, ""},
		"but of that where it was gone back":                  {another(promoted("8"), builtIn, heldIn("prod-1")), head, active, "Forbidden\n" + stageField + mayNotProd + instead},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := bundleWorld(t, c.stored)
			ask := func(activated ...string) string {
				op, before := admissionv1.Update, client.Object(c.before)
				if c.before == nil {
					op, before = admissionv1.Create, nil
				}
				got, _ := w.ask(PathValidateBundle, user, op, before, c.after, mayActivate(activated...))
				return got
			}
			if got := ask("fleet"); got != c.want {
				t.Errorf("with the right to fleet alone:\n%s\nwant:\n%s", got, c.want)
			}
			if got := ask("fleet", "prod"); got != "" {
				t.Errorf("with the right to both: %s", got)
			}
		})
	}
}

// A promotion that waits gives way to what is in force alone: a bundle of which some revision is known, and governs nobody, overtakes it
// only with the right to both.
func TestAWaitingPromotionIsOvertakenByTheBundleInForceAlone(t *testing.T) {
	mayNotProd := "Forbidden\n" + stageField + strings.Replace(mayNotFleet, `bundle "fleet"`, `bundle "prod"`, 1) +
		`; its revision prod-1.0.0-0123456789 is in force, or about to be, and bundle "fleet" would govern in its place`
	for name, c := range map[string]struct {
		stage policyv1alpha1.PolicyStage
		want  string
	}{
		"by that which is in force":       {policyv1alpha1.StageActive, ""},
		"not by one in shadow":            {policyv1alpha1.StageShadow, mayNotProd},
		"not by one that governs a share": {policyv1alpha1.StageCanary, mayNotProd},
		"not by one that was superseded":  {policyv1alpha1.StageSuperseded, mayNotProd},
		"not by one that is a draft":      {policyv1alpha1.StageDraft, mayNotProd},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := bundleWorld(t, revisionOf(t, bundleHead(), atStage(c.stage)), waitingOfProd(t))
			got, _ := w.ask(PathValidateBundle, user, admissionv1.Update, bundleHead(staged("shadow")), bundleHead(staged("active"), activated), mayActivate("fleet"))
			if got != c.want {
				t.Errorf("%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// waitingOfProd is a revision of bundle prod whose promotion waits for a manager.
func waitingOfProd(t *testing.T) *policyv1alpha1.PolicyRevision {
	t.Helper()
	return revisionOf(t, bundleHead(holds("lifecycle.yaml", "other")), func(r *policyv1alpha1.PolicyRevision) {
		r.Name, r.Spec.Bundle, r.Status.LabelledStage = "prod-1.0.0-0123456789", "prod", policyv1alpha1.LabelledActive
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: policyv1alpha1.ConditionActive, Status: metav1.ConditionFalse,
			Reason: policyv1alpha1.ReasonAwaitingReplicas})
	})
}

// A promotion that waits governs nobody: it keeps nobody who may activate what is in force from going back to that.
func TestAWaitingPromotionOfAnotherBundleDoesNotLockOutTheOneInForce(t *testing.T) {
	inForce := revisionOf(t, bundleHead(), promoted("7"), atStage(policyv1alpha1.StageActive))
	w, _ := bundleWorld(t, inForce, waitingOfProd(t))
	got, _ := w.ask(PathValidateBundle, user, admissionv1.Update, bundleHead(staged("shadow")), bundleHead(staged("active"), activated), mayActivate("fleet"))
	if got != "" {
		t.Error(got)
	}
}
