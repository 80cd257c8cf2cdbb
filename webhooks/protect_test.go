// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func protecting(value string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.ProtectAnnotation, value)
	}
}

func TestWhatIsProtectedIsNotDeleted(t *testing.T) {
	const at = "Forbidden\nmetadata.annotations[policy.metalaw.dev/protect]: Forbidden: it is protected from deletion; " +
		"where it is really to go, take the annotation away first: kubectl annotate "
	const claims, servers = at + "serverclaim -n team c policy.metalaw.dev/protect-", at + "server s1 policy.metalaw.dev/protect-"
	w := newWorld(t, defaults(t), server(heldBy("team", "c"), dirty))
	erased := []string{`Server "s1" will be powered off and all data on its disks erased` + waits}
	for name, c := range map[string]struct {
		claim    *v1alpha1.ServerClaim
		server   *v1alpha1.Server
		who      string
		want     string
		warnings []string
	}{
		"a claim":                                {claim: claim(bound, protecting("true")), want: claims},
		"a claim, from the end of its namespace": {claim: claim(bound, protecting("true")), who: "system:serviceaccount:kube-system:namespace-controller", want: claims},
		"a claim that waits":                     {claim: claim(protecting("true")), want: claims},
		"a value that was mistyped":              {claim: claim(bound, protecting("yes")), want: claims},
		"a claim whose protection is lifted":     {claim: claim(bound, protecting("false")), warnings: erased},
		"a claim that was never protected":       {claim: claim(bound), warnings: erased},
		"a server":                               {server: server(annotated(v1alpha1.ProtectAnnotation, "true")), want: servers},
		"a server that is not protected":         {server: server(annotated(v1alpha1.ProtectAnnotation, "false"))},
	} {
		t.Run(name, func(t *testing.T) {
			who := user
			if c.who != "" {
				who = c.who
			}
			var got string
			var warnings []string
			if c.claim != nil {
				got, warnings = w.ask(PathValidateServerClaim, who, admissionv1.Delete, c.claim, nil)
			} else {
				got, warnings = w.ask(PathValidateServer, who, admissionv1.Delete, c.server, nil)
			}
			if diff := cmp.Diff(c.warnings, warnings); got != c.want || diff != "" {
				t.Errorf("got  %s\nwant %s\n%s", got, c.want, diff)
			}
		})
	}
}

func TestAProtectionIsYesOrNo(t *testing.T) {
	const unknown = "Invalid\nmetadata.annotations[policy.metalaw.dev/protect]: Unsupported value: \"yes\": supported values: \"true\", \"false\""
	w := newWorld(t, defaults(t), server())
	if got, _ := w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim(protecting("yes"))); got != unknown {
		t.Error(got)
	}
	if got, _ := w.ask(PathValidateServer, user, admissionv1.Update, server(), server(annotated(v1alpha1.ProtectAnnotation, "yes"))); got != unknown {
		t.Error(got)
	}
	if got, _ := w.ask(PathValidateServerClaim, user, admissionv1.Update, claim(protecting("yes")), claim(protecting("yes"), image("os:2"))); got != "" {
		t.Error("what is stored is held against a change of something else: ", got)
	}
}
