// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

func TestAConfigMapThatAnotherProgramKeepsIsKnownByItsMarks(t *testing.T) {
	const usual = "app.kubernetes.io/instance"
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		writer              string
		want                keeper
	}{
		"nobody's":              {nil, nil, "kubectl-client-side-apply", keeper{}},
		"somebody's by kubectl": {nil, map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}, "kubectl-client-side-apply", keeper{}},
		"Argo CD's by annotation": {nil, map[string]string{"argocd.argoproj.io/tracking-id": "fleet:/ConfigMap:metalaw-system/x"}, "kubectl-client-side-apply",
			keeper{"Argo CD", "fleet", "annotate", "argocd.argoproj.io/tracking-id"}},
		"Argo CD's by label": {map[string]string{"argocd.argoproj.io/instance": "fleet"}, nil, "kubectl-client-side-apply",
			keeper{"Argo CD", "fleet", "label", "argocd.argoproj.io/instance"}},
		"Flux's of a Kustomization": {map[string]string{"kustomize.toolkit.fluxcd.io/name": "fleet"}, nil, "kustomize-controller",
			keeper{"Flux", "fleet", "label", "kustomize.toolkit.fluxcd.io/name"}},
		"Flux's of a HelmRelease": {map[string]string{"helm.toolkit.fluxcd.io/name": "fleet"}, nil, "helm-controller",
			keeper{"Flux", "fleet", "label", "helm.toolkit.fluxcd.io/name"}},
		"Helm's": {nil, map[string]string{"meta.helm.sh/release-name": "fleet"}, "kubectl-client-side-apply",
			keeper{"Helm", "fleet", "annotate", "meta.helm.sh/release-name"}},
		"Argo CD's that tracks by the usual label":        {map[string]string{usual: "fleet"}, nil, "argocd-controller", keeper{"Argo CD", "fleet", "label", usual}},
		"somebody's with the usual label":                 {map[string]string{usual: "fleet"}, nil, "kubectl", keeper{}},
		"nobody's any more that Argo CD once wrote":       {nil, nil, "argocd-controller", keeper{}},
		"nobody's any more that Flux once wrote":          {nil, nil, "kustomize-controller", keeper{}},
		"somebody's with the usual label, by Flux before": {map[string]string{usual: "fleet"}, nil, "helm-controller", keeper{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, kept := keeperOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: c.labels, Annotations: c.annotations,
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: c.writer}}}})
			if got != c.want || kept != (c.want != keeper{}) {
				t.Errorf("%+v, %t", got, kept)
			}
		})
	}
}

func TestAConfigMapThatAnotherProgramKeepsIsLeftAloneWithAWayPast(t *testing.T) {
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"by a label": {map[string]string{"app.kubernetes.io/instance": "fleet"}, nil, "Where Argo CD does not keep it any more, take its mark away, " +
			"and ask again: `kubectl label configmap fleet-1 -n ns app.kubernetes.io/instance-`\n"},
		"by an annotation": {nil, map[string]string{"argocd.argoproj.io/tracking-id": "fleet:x"}, "Where Argo CD does not keep it any more, take its mark away, " +
			"and ask again: `kubectl annotate configmap fleet-1 -n ns argocd.argoproj.io/tracking-id-`\n"},
	} {
		t.Run(name, func(t *testing.T) {
			head := headAt("shadow")
			head.Annotations = c.annotations
			for key, value := range c.labels {
				head.Labels[key] = value
			}
			api, stages := admitting(t, true, nil, head)
			head.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "argocd-controller"}}
			term, out, said := quiet()
			err := (&rollout{timeout: time.Minute}).apply(t.Context(), term, api, head, change{stage: "canary", percent: 5}, "")
			if !errors.Is(err, terminal.ErrIncomplete) || len(*stages) > 0 || !strings.HasPrefix(out.String(), "apiVersion: v1\n") {
				t.Error(err, *stages, out)
			}
			const first = "ConfigMap fleet-1 is kept by Argo CD (fleet), which would undo a change made here. Change it in the repository:\n"
			if _, words, found := strings.Cut(said.String(), first); !found || words != c.want {
				t.Error(said)
			}
		})
	}
}

func TestTheChangeForGitIsAPatch(t *testing.T) {
	head := func(stage string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "fleet-1.4.0",
			Labels: map[string]string{policyv1alpha1.StageLabel: stage}}}
	}
	got := change{stage: "canary", servers: "rack in (r1, r2)", percent: 5}.forGit(head("shadow"))
	want := `apiVersion: v1
kind: ConfigMap
metadata:
  name: fleet-1.4.0
  namespace: metalaw-system
  labels:
    policy.metalaw.dev/stage: canary
  annotations:
    policy.metalaw.dev/servers: "rack in (r1, r2)"
    policy.metalaw.dev/percent: "5"
`
	if got != want {
		t.Errorf("%s", got)
	}
	const labelled = `apiVersion: v1
kind: ConfigMap
metadata:
  name: fleet-1.4.0
  namespace: metalaw-system
  labels:
    policy.metalaw.dev/stage: `
	again := change{stage: "active"}
	if got, want := again.forGit(head("active")), labelled+"draft\n---\n"+labelled+"active\n"; got != want {
		t.Errorf("a head that is labelled active already:\n%s", got)
	}
	if advice := again.advice(head("active")); !strings.Contains(advice, "it takes two commits") {
		t.Error(advice)
	}
}

// revision is a PolicyRevision that came into force by a promotion; 0 for none.
func revision(name, number string) policyv1alpha1.PolicyRevision {
	r := policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if number != "" {
		r.UID = "here"
		r.Annotations = map[string]string{policyv1alpha1.PromotionAnnotation: number, policyv1alpha1.PromotedObjectAnnotation: string(r.UID)}
	}
	return r
}

// builtIn is a revision that no ConfigMap made.
func builtIn(name string, since int64) policyv1alpha1.PolicyRevision {
	r := revision(name, "")
	r.Status.Stage, r.Status.StageSince = policyv1alpha1.StageSuperseded, &metav1.Time{Time: time.Unix(since, 0)}
	return r
}

// stored is a revision that a ConfigMap made.
func stored(r policyv1alpha1.PolicyRevision, created int64) policyv1alpha1.PolicyRevision {
	r.Spec.Source, r.CreationTimestamp = &policyv1alpha1.PolicySource{}, metav1.Unix(created, 0)
	return r
}

func TestWhatIsHeldAndInForceIsInForce(t *testing.T) {
	r := revision("a", "3")
	for _, c := range []struct {
		status metav1.ConditionStatus
		reason string
		want   bool
	}{
		{metav1.ConditionTrue, policyv1alpha1.ReasonInForce, true},
		{metav1.ConditionTrue, policyv1alpha1.ReasonRevisionHeld, true},
		{metav1.ConditionFalse, "Superseded", false},
	} {
		r.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.ConditionActive, Status: c.status, Reason: c.reason}}
		if got := past([]policyv1alpha1.PolicyRevision{r}); got[0].InForce != c.want {
			t.Errorf("%s: %+v", c.reason, got[0])
		}
	}
}

func TestRollbackSaysThatItGoesForwardAgain(t *testing.T) {
	a, b, c := stored(revision("a", "1"), 1), stored(revision("b", "4"), 2), stored(revision("c", "3"), 3)
	all := []policyv1alpha1.PolicyRevision{b, c, a}
	for name, one := range map[string]struct {
		all         []policyv1alpha1.PolicyRevision
		target      *policyv1alpha1.PolicyRevision
		named, says string
	}{
		"to where it came from": {all, &c, "", "this goes forward again to c, which is younger than b, the one in force; for the older  give --to a"},
		"to one that is named":  {all, &c, "c", ""},
		"to an older one":       {[]policyv1alpha1.PolicyRevision{c, b, a}, &b, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := forward(one.all, one.target, one.named); got != one.says {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestRollbackGoesToTheRevisionThatWasInForceBefore(t *testing.T) {
	for name, c := range map[string]struct {
		all      []policyv1alpha1.PolicyRevision
		to, want string
	}{
		"the second latest promotion":   {[]policyv1alpha1.PolicyRevision{revision("c", "3"), revision("b", "2"), revision("a", "1")}, "", "b"},
		"the one that is named":         {[]policyv1alpha1.PolicyRevision{revision("c", "3"), revision("b", "2"), revision("a", "1")}, "a", "a"},
		"the built-in one":              {[]policyv1alpha1.PolicyRevision{revision("c", "1"), builtIn("x", 1), builtIn("e", 2)}, "", "e"},
		"none while the built-in rules": {[]policyv1alpha1.PolicyRevision{builtIn("e", 1)}, "", ""},
		"none that was never in force":  {[]policyv1alpha1.PolicyRevision{revision("c", "3"), stored(revision("s", ""), 1)}, "", ""},
		"none that does not exist":      {[]policyv1alpha1.PolicyRevision{revision("c", "3")}, "x", ""},
		"nothing where nothing is":      {nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := former(c.all, c.to)
			if c.want == "" {
				if err == nil {
					t.Errorf("it goes to %s", got.Name)
				}
				return
			}
			if err != nil || got.Name != c.want {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
