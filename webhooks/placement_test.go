// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func placing(text string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.PlacementAnnotation, text)
	}
}

func claimNamed(namespace, name string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Namespace, c.Name = namespace, name }
}

func bearing(key, value string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Labels = map[string]string{key: value} }
}

func TestPlacementOfAServerClaim(t *testing.T) {
	const path = "metadata.annotations[policy.metalaw.dev/placement]"
	const stays, anew = "Forbidden\n" + path + ": Forbidden: it cannot change once spec.serverRef is set, because ", "; delete the claim and create another"
	const kept, counted = stays + "it belongs to the choice of that server" + anew, stays + "other claims keep their distance by it" + anew
	const good, broken = "where: server.gpus > 0", "where: server.gpu > 0\nspread: {key: rack}"
	stored := []client.Object{server(labelled("rack", "r1")),
		claim(claimNamed("team", "m1"), placing("gang: {name: db, size: 3}")), claim(claimNamed("team", "m2"), placing("gang: {name: db, size: 3}")),
		claim(claimNamed("team", "going"), placing("gang: {name: db, size: 3}"), func(c *v1alpha1.ServerClaim) {
			now := metav1.Now()
			c.DeletionTimestamp, c.Finalizers = &now, []string{v1alpha1.FinalizerServerClaim}
		}),
		claim(claimNamed("other", "m3"), placing("gang: {name: db, size: 5}")), claim(claimNamed("team", "m4"), placing(broken))}
	for name, c := range map[string]struct {
		before, after *v1alpha1.ServerClaim
		want          string
		warnings      []string
	}{
		"a placement passes": {after: claim(placing(good))},
		"a broken one is refused, with every mistake and its place": {after: claim(placing(broken)),
			want: "Invalid\n" + path + ": the placement cannot be read: 2 errors\n" +
				"policy.metalaw.dev/placement:1:8: error: where: there is no fact \"server.gpu\" (did you mean server.gpus?) [cel-unknown-fact]\n" +
				"policy.metalaw.dev/placement:2:1: error: spread: it does not say which claims it keeps apart (add claims: with the labels of the claims to keep apart, or gang:) [placement-claims]"},
		"an empty one is refused": {after: claim(placing("")),
			want: "Invalid\n" + path + ": the placement cannot be read: 1 error\n" +
				"policy.metalaw.dev/placement:1:1: error: the placement is empty (take the annotation away, or write one of where, alternatives, preferred, spread, gang) [placement-empty]"},
		"a broken one that is written later, too": {before: claim(), after: claim(placing("[]")),
			want: "Invalid\n" + path + ": the placement cannot be read: 1 error\npolicy.metalaw.dev/placement:1:1: error: a placement must be a mapping (write key: value pairs) [yaml-type]"},
		"a stored one that is broken does not keep the image from changing": {before: claim(placing(broken)), after: claim(placing(broken), image("os:2"))},
		"a claim that waits may change it":                                  {before: claim(placing(good)), after: claim(placing("where: server.gpus > 1"))},
		"a claim that waits may drop it":                                    {before: claim(placing(good)), after: claim()},
		"a claim that has its server may not change it":                     {before: claim(naming("s1"), placing(good)), after: claim(naming("s1"), placing("where: server.gpus > 1")), want: kept},
		"a claim that has its server may not drop it":                       {before: claim(naming("s1"), placing(good)), after: claim(naming("s1")), want: kept},
		"a claim that has its server may not add one":                       {before: claim(naming("s1")), after: claim(naming("s1"), placing(good)), want: kept},
		"a claim that has its server may not take back its spread":          {before: claim(naming("s1"), placing("spread: {key: rack, claims: {}}")), after: claim(naming("s1")), want: counted},
		"a claim that has its server may add a comment":                     {before: claim(naming("s1"), placing(good)), after: claim(naming("s1"), placing(good+" # at least one"))},
		"a claim that has its server may mend one that could never be read": {before: claim(naming("s1"), placing(broken)), after: claim(naming("s1"), placing(good))},
		"a claim with a placement may get its server":                       {before: claim(placing("alternatives: [{where: server.gpus > 0}, {}]")), after: claim(naming("s1"), placing("alternatives: [{where: server.gpus > 0}, {}]"))},
		"what has no effect is warned about": {after: claim(placing("gang: {name: web, size: 2}\nspread: {key: rack, maxSkew: 2}")), warnings: []string{
			"policy.metalaw.dev/placement:2:1: warning: spread: it has no effect: maxSkew 2 allows all 2 members of the gang in one place (lower maxSkew) [placement-no-effect]"}},
		"a choice where the server is named already is warned about": {after: claim(naming("s1"), placing("preferred: [{weight: 1, where: server.gpus > 0}]")), warnings: []string{
			path + ": spec.serverRef names the server already, so that alternatives and preferred have nothing to choose; what the placement asks must still be true of that server"}},
		"a spread over claims that the claim is none of is warned about": {after: claim(bearing("app", "web"), placing("spread: {key: rack, claims: {matchLabels: {app: db}}}")), warnings: []string{
			path + ": spread.claims does not match the labels of this claim: it keeps away from the claims that match, and those do not keep away from it"}},
		"a spread over claims that the claim is one of passes": {after: claim(bearing("app", "db"), placing("spread: {key: rack, claims: {matchLabels: {app: db}}}"))},
		"the third member of a gang of three passes":           {after: claim(placing("gang: {name: db, size: 3}"))},
		"a member that gives another size is warned about": {after: claim(placing("gang: {name: db, size: 4}")), warnings: []string{
			path + ": gang \"db\": its members give different sizes: 3 and 4; none of them gets a server until they agree"}},
		"a member too many, too": {before: claim(claimNamed("team", "m9")), after: claim(claimNamed("team", "m9"), placing("gang: {name: db, size: 2}")), warnings: []string{
			path + ": gang \"db\": its members give different sizes: 2 and 3; none of them gets a server until they agree"}},
		"a member that is stored is not counted twice": {before: claim(claimNamed("team", "m1"), placing("gang: {name: web, size: 3}")), after: claim(claimNamed("team", "m1"), placing("gang: {name: db, size: 3}"))},
	} {
		t.Run(name, func(t *testing.T) {
			b := *defaults(t)
			b.Settings.Claims.OnUnsatisfiable = bundle.UnsatisfiableAllow // of that other tests tell
			w := newWorld(t, &b, stored...)
			op := admissionv1.Create
			var before client.Object
			if c.before != nil {
				op, before = admissionv1.Update, c.before
			}
			got, warnings := w.ask(PathValidateServerClaim, user, op, before, c.after)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAGangThatIsLargerThanTheQuotaOfItsNamespaceIsWarnedAbout(t *testing.T) {
	want := []string{`metadata.annotations[policy.metalaw.dev/placement]: gang "db": it takes 5 servers, and the quota of the namespace allows its claims 4. ` +
		"None of its members gets one until the quota is raised or the gang is smaller; ask who keeps the policy (settings.claims.quota of the bundle in force)"}
	five, wide := placing("gang: {name: db, size: 5}"), placing("gang: {name: db, size: 5} # of the same kind")
	for name, c := range map[string]struct {
		before, after *v1alpha1.ServerClaim
		want          []string
	}{
		"when a member is created":                  {nil, claim(five), want},
		"when a claim becomes a member":             {claim(), claim(five), want},
		"not again for another image":               {claim(five), claim(five, image("os:2")), nil},
		"not where the quota has room for it":       {nil, claim(placing("gang: {name: db, size: 4}")), nil},
		"not for another namespace":                 {nil, claim(claimNamed("other", "c"), five), nil},
		"not for a member that has its server":      {claim(naming("s1"), five), claim(naming("s1"), wide), nil},
		"not for one that is left without the gang": {claim(five), claim(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := *defaults(t)
			b.Settings.Claims.OnUnsatisfiable = bundle.UnsatisfiableAllow // of that other tests tell
			b.Settings.Claims.Quota = bundle.Quota{Namespaces: map[string]int{"team": 4}}
			op, before := admissionv1.Create, client.Object(nil)
			if c.before != nil {
				op, before = admissionv1.Update, c.before
			}
			got, warnings := newWorld(t, &b, server()).ask(PathValidateServerClaim, user, op, before, c.after)
			if diff := cmp.Diff(c.want, warnings); diff != "" || got != "" {
				t.Error(got, diff)
			}
		})
	}
}
