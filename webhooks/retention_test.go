// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func TestWhoEndsARetentionIsTold(t *testing.T) {
	recycle := func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRecycle }
	unheld := func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }
	kept := func(change ...func(*v1alpha1.Server)) *v1alpha1.Server {
		return server(append([]func(*v1alpha1.Server){heldBy("team", "c"), retain, annotated(v1alpha1.ClaimUIDAnnotation, "u"),
			annotated(v1alpha1.ReleasedClaimAnnotation, "u")}, change...)...)
	}
	const erased = ": THE DATA THAT IS KEPT ON THIS SERVER WILL BE ERASED AT ONCE (machine " + uuid + "); to keep it, set the field back now"
	for name, c := range map[string]struct {
		before, after *v1alpha1.Server
		sanitization  string
		want          []string
	}{
		"the policy is changed":              {before: kept(), after: kept(recycle), want: []string{"spec.reclaimPolicy is no longer Retain" + erased}},
		"the reference is cleared":           {before: kept(), after: kept(unheld), want: []string{"spec.serverClaimRef is cleared" + erased}},
		"what changes something else is not": {before: kept(), after: kept(booting("Boot0001"))},
		"nothing is erased while it is held": {before: server(heldBy("team", "c"), retain), after: server(heldBy("team", "c"), recycle)},
		"where no wipe follows": {before: kept(), after: kept(recycle), sanitization: bundle.SanitizationNone, want: []string{
			"spec.reclaimPolicy is no longer Retain: the data that is kept on this server is given up at once, and the server may be offered again; " +
				"its data is NOT erased (sanitization: none)"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := *defaults(t)
			if c.sanitization != "" {
				b.Settings.Sanitization = c.sanitization
			}
			got, warnings := newWorld(t, &b).ask(PathValidateServer, user, admissionv1.Update, c.before, c.after)
			if diff := cmp.Diff(c.want, warnings); diff != "" || got != "" {
				t.Error(got, diff)
			}
		})
	}
}
