// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// restoring is what comes of the restore of a revision by somebody who may activate it, while a bundle of a name is in force by what this
// manager knows. The restored revision holds the default lifecycle.
func restoring(t *testing.T, r *policyv1alpha1.PolicyRevision, active string, stored ...client.Object) admission.Response {
	t.Helper()
	w, a := bundleWorld(t, stored...)
	governs := *defaults(t)
	governs.Revision.Name = active
	older := anotherLifecycle(t, "  Observing:\n", "  Attic:\n    means: Nobody comes here.\n    stable: true\n    exits:\n    - {rule: Down, to: Initial, when: parkAsked}\n\n  Observing:\n")
	accept := func(ctx context.Context, files bundle.Files) (*bundle.Bundle, diag.List, error) {
		b, found, err := a.accept(ctx, files)
		if b != nil {
			b.Lifecycle = defaults(t).Lifecycle
		}
		return b, found, err
	}
	hooks, err := handlers(Options{Bundles: revisions{active: &governs, byName: map[string]*bundle.Bundle{"older": older}}, Client: w.cached, Reader: w.stored,
		ManagerUser: manager, Namespace: "metalaw-system", Registry: prometheus.NewRegistry(), Rights: reviewer{}, Accept: accept}, w.clock)
	if err != nil {
		t.Fatal(err)
	}
	req := admissionv1.AdmissionRequest{Operation: admissionv1.Create, Name: r.Name, UserInfo: authenticationv1.UserInfo{Username: user}}
	req.Object.Raw = raw(t, r)
	activates(&req)
	return hooks[PathValidateRevision].Handle(t.Context(), admission.Request{AdmissionRequest: req})
}

func TestARestoreDoesNotOvertakeWhatWasPromoted(t *testing.T) {
	restored := func(change ...func(*policyv1alpha1.PolicyRevision)) *policyv1alpha1.PolicyRevision {
		return revisionOf(t, bundleHead(), change...)
	}
	name := restored().Name
	called := func(name string) func(*policyv1alpha1.PolicyRevision) {
		return func(r *policyv1alpha1.PolicyRevision) { r.Name = name }
	}
	here := func(n int64) func(*policyv1alpha1.PolicyRevision) {
		return func(r *policyv1alpha1.PolicyRevision) {
			r.UID = "6f1d"
			r.SetPromotion(n)
		}
	}
	prior := restored(called("fleet-0.9.0-0123456789"), here(6))
	brought := restored(called(prior.Name), here(6), func(r *policyv1alpha1.PolicyRevision) { r.UID = "77aa" })
	builtIn := restored(called("default-1.0.0-0123456789"), here(1), func(r *policyv1alpha1.PolicyRevision) { r.Spec.Source = nil })
	backIn := restored(called(builtIn.Name), here(6), func(r *policyv1alpha1.PolicyRevision) { r.Spec.Source = nil })
	const restore = "a revision is restored, as from a backup; a new bundle is stored in a ConfigMap instead"
	const lower = "the revision was in force, and comes back without the number in the annotation policy.metalaw.dev/promotion that keeps it there. " +
		"It gets that again, unless the managers have restarted since it was deleted. See in metalaw policy history what is in force, and promote it where it is not"
	missing := func(of string) string {
		return "no revision was promoted in this cluster, so that no policy governs until one is: metalaw policy rollback --to " + of
	}
	behind := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Status: v1alpha1.ServerStatus{State: "Attic", Lifecycle: &v1alpha1.LifecycleStatus{Revision: "older"}}}
	const drops = "1 server is in states that bundle fleet 1.0.0 neither defines nor migrates: Attic 1"
	for title, c := range map[string]struct {
		restored *policyv1alpha1.PolicyRevision
		active   string
		stored   []client.Object
		want     string
		warnings []string
	}{
		"one that was promoted before":                {restored(promotion("5")), prior.Name, []client.Object{prior}, "", []string{restore}},
		"one that was never promoted":                 {restored(), prior.Name, []client.Object{prior}, "", []string{restore}},
		"one with a later promotion changes nothing":  {restored(promotion("7")), prior.Name, []client.Object{prior}, "", []string{restore}},
		"nor does one with the same":                  {restored(promotion("6")), prior.Name, []client.Object{prior}, "", []string{restore}},
		"nor after the built-in one was gone back to": {restored(promotion("7")), backIn.Name, []client.Object{backIn}, "", []string{restore}},
		"where no user promoted any, nothing governs": {restored(promotion("7")), builtIn.Name, []client.Object{builtIn}, "", []string{restore, missing(name)}},
		"also before the built-in one is numbered":    {restored(promotion("7")), builtIn.Name, nil, "", []string{restore, missing(name)}},
		"of two the later one is named":               {restored(promotion("5")), "", []client.Object{brought, builtIn}, "", []string{restore, missing(brought.Name)}},
		"a number without a promotion keeps nothing":  {restored(), builtIn.Name, []client.Object{builtIn}, "", []string{restore}},
		"not with a number that few can follow, also where it was in force": {restored(promotion("9007199254740992")), name, []client.Object{prior},
			"Invalid\nmetadata.annotations[policy.metalaw.dev/promotion]: Invalid value: \"9007199254740992\": a promotion has a number from 1 to " +
				"1099511627776; take the object from the backup unchanged", nil},
		"with the number that it had, however late": {restored(promotion("1099511627778")), name,
			[]client.Object{restored(promoted("1099511627778"))}, "", []string{restore}},
		"the one that is in force and was deleted":   {restored(promotion("7")), name, []client.Object{prior}, "", []string{restore}},
		"also where the cache shows it still":        {restored(promotion("7")), prior.Name, []client.Object{restored(promoted("7"))}, "", []string{restore}},
		"with a word where it lacks its number":      {restored(), name, []client.Object{prior}, "", []string{restore, lower}},
		"with a word where it has an earlier number": {restored(promotion("5")), name, []client.Object{prior}, "", []string{restore, lower}},
		"below what is in force, however late that is": {restored(promotion("1099511627777")), prior.Name,
			[]client.Object{restored(called(prior.Name), promoted("1099511627778"))}, "", []string{restore}},
		"with a word where it was in force": {restored(promotion("7")), name, []client.Object{behind}, "",
			[]string{restore, drops + "; it was in force before: they stay under their revision until they leave these states"}},
		"whatever it drops where it does not come into force": {restored(promotion("5")), prior.Name, []client.Object{prior, behind}, "", []string{restore}},
	} {
		t.Run(title, func(t *testing.T) {
			got, warnings := said(restoring(t, c.restored, c.active, c.stored...))
			if diff := cmp.Diff(c.want, got) + cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARestoreIsToldToTheAuditLog(t *testing.T) {
	for title, c := range map[string]struct {
		change []func(*policyv1alpha1.PolicyRevision)
		number map[string]string
	}{
		"with its promotion": {[]func(*policyv1alpha1.PolicyRevision){promotion("7")}, map[string]string{"promotion": "7"}},
		"without one":        {nil, map[string]string{}},
	} {
		t.Run(title, func(t *testing.T) {
			r := revisionOf(t, bundleHead(), c.change...)
			want := map[string]string{"activated-by": "jane", "bundle": "fleet", "digest": r.Spec.Digest}
			for key, value := range c.number {
				want[key] = value
			}
			got := restoring(t, r, "default-1.0.0-0123456789")
			if diff := cmp.Diff(want, got.AuditAnnotations); diff != "" {
				t.Error(got.Result, diff)
			}
		})
	}
}
