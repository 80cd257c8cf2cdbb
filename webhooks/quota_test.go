// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func aClaim(name string, change ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
	return claim(append(change, func(c *v1alpha1.ServerClaim) { c.Name = name })...)
}

// limited is the default bundle with a quota.
func limited(t testing.TB, limit int, objects ...client.Object) *world {
	t.Helper()
	b := *defaults(t)
	b.Settings.Claims.Quota = bundle.Quota{Default: ptr.To(limit)}
	return newWorld(t, &b, append(objects, server(serverNamed("any")))...)
}

func (w *world) create(c *v1alpha1.ServerClaim, edit ...func(*admissionv1.AdmissionRequest)) string {
	w.t.Helper()
	got, _ := w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, c, edit...)
	return got
}

func exceeded(used, limit int, pending string) string {
	return fmt.Sprintf("Forbidden\nmetadata.namespace: Forbidden: exceeded quota: namespace \"team\" has %d of %d claims%s; delete one of them, "+
		"or ask who keeps the policy to raise settings.claims.quota of the bundle in force (", used, limit, pending)
}

func TestANamespaceHasAsManyClaimsAsItMay(t *testing.T) {
	const moment = " (1 of them admitted a moment ago; if one of those was not stored, try again in two seconds)"
	w := limited(t, 2, aClaim("stored"), aClaim("elsewhere", func(c *v1alpha1.ServerClaim) { c.Namespace = "other" }))
	if got := w.create(aClaim("tried"), dryRun); got != "" {
		t.Fatal(got)
	}
	if got := w.create(aClaim("refused", image(" "))); !strings.Contains(got, "a claim needs an image") {
		t.Fatal(got)
	}
	if got := w.create(aClaim("second")); got != "" {
		t.Fatal("what was tried or refused counts: ", got)
	}
	if got := w.create(aClaim("second")); got != "" {
		t.Error("the same claim again: ", got)
	}
	if got := w.create(aClaim("third")); !strings.HasPrefix(got, exceeded(2, 2, moment)) {
		t.Error(got)
	}
	w.now = w.now.Add(3 * time.Second)
	if got := w.create(aClaim("third")); got != "" {
		t.Error("one that was never stored counts for ever: ", got)
	}
}

func TestANamespaceThatMayHaveNoClaimIsNotToldToDeleteOne(t *testing.T) {
	want := "Forbidden\nmetadata.namespace: Forbidden: exceeded quota: namespace \"team\" may have no claims; ask who keeps the policy to raise " +
		"settings.claims.quota of the bundle in force ("
	if got := limited(t, 0).create(aClaim("first")); !strings.HasPrefix(got, want) {
		t.Error(got)
	}
}

// ending says that a claim is being deleted.
func ending(c *v1alpha1.ServerClaim) {
	c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Unix(1, 0)), []string{"f"}
}

func TestWhatCountsAgainstAQuota(t *testing.T) {
	for name, c := range map[string]struct {
		stored *v1alpha1.ServerClaim
		counts bool
	}{
		"a claim that waits":                       {aClaim("a"), true},
		"a claim that is bound":                    {aClaim("a", bound), true},
		"a claim that gives its server back":       {aClaim("a", bound, ending), true},
		"a claim that ends without having had one": {aClaim("a", ending), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := limited(t, 1, c.stored).create(aClaim("b"))
			if counts := got != ""; counts != c.counts {
				t.Error(got)
			}
		})
	}
	if got, _ := limited(t, 0).ask(PathValidateServerClaim, user, admissionv1.Update, claim(), claim(image("os:2"))); got != "" {
		t.Error("a change of a claim that is stored is held against the quota: ", got)
	}
}

func TestAClaimComesBackToItsServerWhateverTheQuota(t *testing.T) {
	const back = `); a server is held for a former claim of this name: a claim that names it in spec.serverRef has it back`
	const takesOver = `this claim takes over Server "s1" of the former claim of this name, with its data: nothing was erased since. ` +
		"Where that is not meant, delete this claim, which releases the server, and claim another one"
	held := server(heldBy("team", "c"), annotated(v1alpha1.ClaimUIDAnnotation, "u1"), dirty)
	for name, c := range map[string]struct {
		limit    int
		server   *v1alpha1.Server
		stored   []client.Object
		claim    *v1alpha1.ServerClaim
		refused  bool
		hint     string
		warnings []string
	}{
		"its server names it":                            {limit: 1, server: held, claim: claim(naming("s1")), warnings: []string{takesOver}},
		"no claim is allowed":                            {server: held, claim: claim(naming("s1")), warnings: []string{takesOver}},
		"it does not name its server, and is told of it": {limit: 1, server: held, claim: claim(), refused: true, hint: back},
		"it names no server where none is allowed":       {server: held, claim: claim(), refused: true, hint: back},
		"its server was released": {limit: 1, claim: claim(naming("s1")), refused: true, server: server(heldBy("team", "c"),
			annotated(v1alpha1.ClaimUIDAnnotation, "u1"), annotated(v1alpha1.ReleasedClaimAnnotation, "u1"), dirty), warnings: []string{
			`Server "s1" is still held by the former claim of this name, whose release is recorded; this claim waits until the server is Available again`}},
		"its server is free": {limit: 1, server: server(), claim: claim(naming("s1")), refused: true},
		"the server is held for a claim of another namespace": {limit: 1, server: server(heldBy("other", "c")), claim: claim(naming("s1")), refused: true,
			warnings: []string{`Server "s1" is held by another claim; this one waits until it is released`}},
		"a claim of the name ends, and has it until then": {limit: 1, server: held, stored: []client.Object{claim(naming("s1"), ending)}, claim: claim(), refused: true},
		"a claim of the name lives":                       {limit: 1, server: held, stored: []client.Object{claim(naming("s1"))}, claim: claim(), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := limited(t, c.limit, append(c.stored, aClaim("waits"), c.server)...)
			got, warnings := w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, c.claim)
			if refused := strings.Contains(got, "exceeded quota"); refused != c.refused || !strings.HasSuffix(got, c.hint) || c.hint == "" && strings.Contains(got, "has it back") {
				t.Error(got)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNamespacesOfWhichNobodyAsksAreForgotten(t *testing.T) {
	now := time.Unix(0, 0)
	q := newQuotas(newWorld(t, defaults(t)).cached, func() time.Time { return now })
	for i := range 3 {
		if _, err := q.take(t.Context(), claim(claimNamed(fmt.Sprint("ci-", i), "c")), 5, true); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(inFlight)
	if _, err := q.take(t.Context(), claim(claimNamed("team", "c")), 5, true); err != nil {
		t.Fatal(err)
	}
	if len(q.recent) != 1 {
		t.Errorf("it remembers %v", q.recent)
	}
}
