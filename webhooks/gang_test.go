// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func finalized(c *v1alpha1.ServerClaim) { c.Finalizers = []string{v1alpha1.FinalizerServerClaim} }

func wasBound(c *v1alpha1.ServerClaim) { c.Status.Phase = v1alpha1.PhaseBound }

func TestAMemberOfAGangThatNamesItsServer(t *testing.T) {
	const refused = "Invalid\nspec.serverRef.name: Invalid value: \"s1\": a claim of a gang cannot name its server in spec.serverRef; " +
		"serverRef cannot be changed, so claim without it, or take gang out of the placement"
	const warned = "spec.serverRef: a claim of a gang cannot name its server in spec.serverRef; unless its status is restored, or its server " +
		"names it, this one gets no server, and serverRef cannot be changed: claim anew without it"
	const kept = "Forbidden\nmetadata.annotations[policy.metalaw.dev/placement]: Forbidden: it cannot change once spec.serverRef is set, " +
		"because other claims keep their distance by it; delete the claim and create another"
	gang, broken := placing("gang: {name: db, size: 2}"), placing("gang: {name: db}")
	free, reserved := server(), server(heldBy("team", "c"), annotated(v1alpha1.ClaimUIDAnnotation, ""))
	released := server(heldBy("team", "c"), annotated(v1alpha1.ClaimUIDAnnotation, "u1"), annotated(v1alpha1.ReleasedClaimAnnotation, "u1"))
	for name, c := range map[string]struct {
		server        *v1alpha1.Server
		before, after *v1alpha1.ServerClaim
		who           string
		want          string
		warnings      []string
	}{
		"is refused":                                    {server: free, after: claim(naming("s1"), gang), want: refused},
		"is refused where it names it later":            {server: free, before: claim(gang), after: claim(naming("s1"), gang), want: refused},
		"is refused where it comes to both at once":     {server: free, before: claim(), after: claim(naming("s1"), gang), want: refused},
		"is refused where it mends what was unreadable": {server: free, before: claim(naming("s1"), broken), after: claim(naming("s1"), gang), want: refused},
		"hears once that its placement stays":           {server: free, before: claim(naming("s1")), after: claim(naming("s1"), gang), want: kept},
		"is refused where a former claim's release is recorded on the server": {server: released, after: claim(naming("s1"), gang), want: refused,
			warnings: []string{`Server "s1" is still held by the former claim of this name, whose release is recorded; ` +
				"this claim waits until the server is Available again"}},
		"gets it from the manager":                                 {server: free, before: claim(gang), after: claim(naming("s1"), gang), who: manager},
		"may change its image":                                     {server: free, before: claim(naming("s1"), gang), after: claim(naming("s1"), gang, image("os:2"))},
		"may add a comment":                                        {server: free, before: claim(naming("s1"), gang), after: claim(naming("s1"), placing("gang: {name: db, size: 2} # one"))},
		"may mend its placement where it is bound":                 {server: free, before: claim(naming("s1"), broken, wasBound), after: claim(naming("s1"), gang, wasBound)},
		"may name the one that names it":                           {server: reserved, before: claim(gang), after: claim(naming("s1"), gang)},
		"is warned where it may be from a backup without a status": {server: free, after: claim(naming("s1"), gang, finalized), warnings: []string{warned}},
		"passes where it is from a backup with its status":         {server: free, after: claim(naming("s1"), gang, finalized, wasBound)},
		"passes where it is from a backup and its server was there": {server: reserved, after: claim(naming("s1"), gang, finalized), warnings: []string{
			`this claim takes over Server "s1" of the former claim of this name, with whatever is on its disks. ` +
				"Where that is not meant, delete this claim, which releases the server, and claim another one"}},
		"passes where it is of no gang": {server: free, after: claim(naming("s1"), placing("where: server.gpus > 0"))},
	} {
		t.Run(name, func(t *testing.T) {
			b := *defaults(t)
			b.Settings.Claims.OnUnsatisfiable = bundle.UnsatisfiableAllow // of that other tests tell
			op, who := admissionv1.Create, user
			var before client.Object
			if c.before != nil {
				op, before = admissionv1.Update, c.before
			}
			if c.who != "" {
				who = c.who
			}
			got, warnings := newWorld(t, &b, c.server).ask(PathValidateServerClaim, who, op, before, c.after)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}
