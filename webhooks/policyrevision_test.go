// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func TestPolicyRevisions(t *testing.T) {
	revision := func(change ...func(*policyv1alpha1.PolicyRevision)) *policyv1alpha1.PolicyRevision {
		return revisionOf(t, bundleHead(), change...)
	}
	marked := func(key string) func(*policyv1alpha1.PolicyRevision) {
		return func(r *policyv1alpha1.PolicyRevision) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, "9") }
	}
	labelledBy := func(key string) func(*policyv1alpha1.PolicyRevision) {
		return func(r *policyv1alpha1.PolicyRevision) { r.Labels = map[string]string{key: "x"} }
	}
	active := func(r *policyv1alpha1.PolicyRevision) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: policyv1alpha1.ConditionActive, Status: metav1.ConditionTrue})
	}
	name := revision().Name
	const alone = "Forbidden: only the manager writes it: store a bundle in a ConfigMap, and label that with the stage"
	remedy := "; promote another, or take the stage off its ConfigMap, and delete it then"
	pinned := server(governedBy(name))
	also := server(governedBy(name), serverNamed("s2"))
	for title, c := range map[string]struct {
		stored        []client.Object
		before, after *policyv1alpha1.PolicyRevision
		who           string
		may, status   bool
		want          string
		warnings      []string
	}{
		"the manager makes one": {after: revision(), who: manager},
		"others do not":         {after: revision(), want: "Forbidden\n" + alone + "\n" + mayNotFleet + ", and which restoring a backup takes as well"},
		"a backup is restored": {stored: []client.Object{revision(promoted("8"), func(r *policyv1alpha1.PolicyRevision) { r.Name = "fleet-0.9.0-0123456789" })},
			after: revision(promotion("7")), may: true, warnings: []string{"a revision is restored, as from a backup; a new bundle is stored in a ConfigMap instead"}},
		"not with a promotion that leaves no room": {after: revision(promotion("9007199254740992")), may: true, want: "Invalid\n" +
			`metadata.annotations[policy.metalaw.dev/promotion]: Invalid value: "9007199254740992": a promotion has a number from 1 to 1099511627776; take the object from the backup unchanged`},
		"not one that is not accepted": {after: revisionOf(t, bundleHead(holds("lifecycle.yaml", "broken"))), may: true, want: "Invalid\n" +
			"data: this version of metalaw does not accept what the revision holds; restore it with the version that made it (" + bundle.EngineVersion +
			"), or store a bundle in a ConfigMap instead: 1 error\n" + `lifecycle.yaml:3:7: error: Claimed: there is no state "Nowhere" (write the name of a state) [lifecycle-state]`,
			warnings: []string{"a revision is restored, as from a backup; a new bundle is stored in a ConfigMap instead"}},
		"not under another version than its content's": {after: revision(func(r *policyv1alpha1.PolicyRevision) {
			r.Spec.Version, r.Name = "2.0.0", bundle.RevisionName("fleet", "2.0.0", r.Spec.Digest)
		}), may: true, want: "Invalid\n" + `metadata.name: Invalid value: "` + bundle.RevisionName("fleet", "2.0.0", revision().Spec.Digest) +
			`": its content is that of ` + name + "; take the object from the backup unchanged",
			warnings: []string{"a revision is restored, as from a backup; a new bundle is stored in a ConfigMap instead"}},
		"not with a promotion beyond all": {after: revision(promotion("9223372036854775807")), may: true, want: "Invalid\n" +
			`metadata.annotations[policy.metalaw.dev/promotion]: Invalid value: "9223372036854775807": a promotion has a number from 1 to 1099511627776; take the object from the backup unchanged`},
		"not with another content":               {after: revision(func(r *policyv1alpha1.PolicyRevision) { r.Spec.Digest = fleetDigest }), may: true, want: "Invalid\n" + `spec.digest: Invalid value: "` + fleetDigest + `": the content has digest ` + revision().Spec.Digest + "; take the object from the backup unchanged\n" + `metadata.name: Invalid value: "` + name + `": a revision of this bundle, version and digest is named fleet-1.0.0-f000000000`},
		"not without a content":                  {after: revision(func(r *policyv1alpha1.PolicyRevision) { r.Spec.Content = nil }), may: true, want: "Invalid\n" + `spec.content: Invalid value: "": unpack bundle: EOF; take the object from the backup unchanged`},
		"the status is the manager's":            {before: revision(), after: revision(atStage(policyv1alpha1.StageActive)), may: true, status: true, want: "Forbidden\nstatus: " + alone},
		"so is what metalaw reads":               {before: revision(), after: revision(marked(policyv1alpha1.PromotionAnnotation)), may: true, want: "Forbidden\nmetadata.annotations: " + alone},
		"also that it goes":                      {before: revision(promotion("7")), after: revision(), may: true, want: "Forbidden\nmetadata.annotations: " + alone},
		"so are our labels":                      {before: revision(), after: revision(labelledBy("policy.metalaw.dev/x")), may: true, want: "Forbidden\nmetadata.labels: " + alone},
		"so is the content":                      {before: revision(), after: revision(func(r *policyv1alpha1.PolicyRevision) { r.Spec.Version = "2.0.0" }), may: true, want: "Forbidden\nspec: " + alone},
		"the rest is nobody's":                   {before: revision(), after: revision(marked("example.com/x"), labelledBy("example.com/y"))},
		"one that nobody needs goes":             {before: revision(atStage(policyv1alpha1.StageSuperseded)), may: true},
		"by who may only":                        {before: revision(atStage(policyv1alpha1.StageSuperseded)), want: "Forbidden\n" + mayNotFleet},
		"one in force stays":                     {before: revision(active), may: true, want: "Forbidden\nForbidden: the revision is in force" + remedy},
		"so does the one that was promoted last": {stored: []client.Object{revision(promoted("7"))}, before: revision(promoted("7")), may: true, want: "Forbidden\nForbidden: the revision is in force" + remedy},
		"unless its content is damaged": {stored: []client.Object{pinned}, before: revision(active, func(r *policyv1alpha1.PolicyRevision) { r.Spec.Content = r.Spec.Content[:20] }), may: true,
			warnings: []string{"the content of the revision is damaged: restore it from a good backup at once, under the same name and with its annotations. " +
				"Until then servers pinned to it come under what is in force"}},
		"so does a canary": {before: revision(atStage(policyv1alpha1.StageCanary)), may: true, want: "Forbidden\nForbidden: the revision is a canary" + remedy},
		"so does a shadow": {before: revision(atStage(policyv1alpha1.StageShadow)), may: true, want: "Forbidden\nForbidden: the revision is evaluated in shadow" + remedy},
		"so does one that its ConfigMap would bring back": {before: revision(atStage(policyv1alpha1.StageSuperseded), func(r *policyv1alpha1.PolicyRevision) {
			r.Status.LabelledStage, r.Status.Head = policyv1alpha1.LabelledActive, "fleet-1"
		}), may: true, want: "Forbidden\nForbidden: ConfigMap fleet-1, which holds the bundle, bears stage active still, and would have the revision made and used anew. Label it policy.metalaw.dev/stage=draft or delete it, and delete the revision then"},
		"so does one that governs a server":         {stored: []client.Object{pinned}, before: revision(atStage(policyv1alpha1.StageSuperseded)), may: true, want: "Forbidden\nForbidden: server s1 is governed by it and adopts another revision in the next stable state; delete it then"},
		"so does one that governs several":          {stored: []client.Object{pinned, also}, before: revision(), may: true, want: "Forbidden\nForbidden: 2 servers (s2 is one) are governed by it and adopt another revision in the next stable state; delete it then"},
		"the manager's own deletion is not checked": {before: revision(active), who: manager},
	} {
		t.Run(title, func(t *testing.T) {
			w, _ := bundleWorld(t, c.stored...)
			var before, after client.Object
			op := admissionv1.Update
			if c.after != nil {
				after = c.after
			} else {
				op = admissionv1.Delete
			}
			if c.before != nil {
				before = c.before
			} else {
				op = admissionv1.Create
			}
			who := user
			if c.who != "" {
				who = c.who
			}
			got, warnings := w.ask(PathValidateRevision, who, op, before, after, func(req *admissionv1.AdmissionRequest) {
				if c.may {
					activates(req)
				}
				if c.status {
					inStatus(req)
				}
			})
			if diff := cmp.Diff(c.want, got) + cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}
