// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/webhooks/review"
)

// readied is a server that was free and has moved to Reserved, where a freeze keeps it from being booted.
func readied(s *v1alpha1.Server) {
	dirty(s)
	s.Status.State, s.Status.PowerState = v1alpha1.StateReserved, v1alpha1.PowerStateOff
	s.Status.Lifecycle.Entry = 4
	s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionForceOff, Entry: 2}
	s.Status.Lifecycle.History = []v1alpha1.LifecycleMove{{From: v1alpha1.StateAvailable, To: v1alpha1.StateReserved, Entry: 4}}
}

// waits ends what becomes of server s1 under the default bundle.
const (
	waits    = ". It is shut down at once; the rest" + untilThen
	waitsOff = ". That" + untilThen

	untilThen = " begins 5m after the claim has ended; until then metalaw server undo-release s1 takes it back"
)

func TestDeletingAClaimSaysWhatBecomesOfTheData(t *testing.T) {
	const erased = `Server "s1" will be powered off and all data on its disks erased` + waits
	for name, c := range map[string]struct {
		server       *v1alpha1.Server
		sanitization string
		want         []string
	}{
		"what was booted is erased": {server: server(heldBy("team", "c"), dirty), want: []string{erased}},
		"what is retained is kept":  {server: server(heldBy("team", "c"), dirty, retain), want: []string{`Server "s1" will be powered off; its data is kept (reclaimPolicy Retain) until its serverClaimRef is cleared or its reclaimPolicy is set to Recycle` + waits}},
		"a waived wipe is said":     {server: server(heldBy("team", "c"), dirty), sanitization: "none", want: []string{`Server "s1" will be powered off and offered again; its data is NOT erased (sanitization: none)` + waits}},
		"a holder whose reference was cleared by hand is told that it is a release": {server: server(annotated(v1alpha1.ClaimUIDAnnotation, "u1"), dirty),
			want: []string{`Server "s1" still records this claim as its holder, though its serverClaimRef was cleared. ` +
				"Deleting the claim counts as its release, and all data on the server's disks will be erased"}},
		"a cleared reference ends what is retained": {server: server(annotated(v1alpha1.ClaimUIDAnnotation, "u1"), dirty, retain),
			want: []string{`Server "s1" still records this claim as its holder, though its serverClaimRef was cleared. ` +
				"Deleting the claim counts as its release, and all data on the server's disks will be erased"}},
		"a cleared reference where the wipe is waived": {server: server(annotated(v1alpha1.ClaimUIDAnnotation, "u1"), dirty), sanitization: "none",
			want: []string{`Server "s1" still records this claim as its holder, though its serverClaimRef was cleared. ` +
				"Deleting the claim counts as its release, and the server may be offered again; its data is NOT erased (sanitization: none)"}},
		"a cleared reference of another holder": {server: server(annotated(v1alpha1.ClaimUIDAnnotation, "u2"), dirty)},
		"a server that was never booted":        {server: server(heldBy("team", "c"))},
		"one that was made ready and is off since": {server: server(heldBy("team", "c"), readied), want: []string{
			`nothing has run on Server "s1" for this claim; all data on its disks will be erased all the same, because it was made ready to boot` + waitsOff}},
		"one that was off, and is being switched on": {server: server(heldBy("team", "c"), readied, func(s *v1alpha1.Server) {
			s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, Entry: 4}
		}), want: []string{erased}},
		"one that was switched off for the claim before": {server: server(heldBy("team", "c"), readied, func(s *v1alpha1.Server) {
			s.Status.Lifecycle.SeenOnAt = &metav1.MicroTime{Time: time.Unix(1, 0)}
		}), want: []string{erased}},
		"one that came into the claim's hands otherwise": {server: server(heldBy("team", "c"), readied, func(s *v1alpha1.Server) {
			s.Status.Lifecycle.History[0].From = v1alpha1.StateInitial
		}), want: []string{erased}},
		"one that somebody else switched on": {server: server(heldBy("team", "c"), readied, func(s *v1alpha1.Server) {
			s.Status.PowerState = v1alpha1.PowerStateOn
		}), want: []string{erased}},
		"a server in another claim's hands": {server: server(heldBy("team", "d"), dirty)},
		"a server that is gone":             {server: server(serverNamed("s2"))},
	} {
		t.Run(name, func(t *testing.T) {
			b := *defaults(t)
			if c.sanitization != "" {
				b.Settings.Sanitization = c.sanitization
			}
			got, warnings := newWorld(t, &b, c.server).ask(PathValidateServerClaim, user, admissionv1.Delete, claim(naming("s1"), func(c *v1alpha1.ServerClaim) { c.UID = "u1" }), nil)
			if diff := cmp.Diff(c.want, warnings); got != "" || diff != "" {
				t.Error(got, diff)
			}
		})
	}
}

func TestDeletingAClaimThatIsLeftAloneErasesNothing(t *testing.T) {
	const alone = "this claim is left alone (annotation metal.ironcore.dev/operation=ignore)"
	const stays = alone + ": it stays, and keeps its server, until that annotation is removed; then: "
	const goes = alone + " and has no finalizer metal.ironcore.dev/serverclaim, so that it goes without a release. " +
		`Server "s1" stays as it is, with its data, until an operator releases it`
	held := server(heldBy("team", "c"), dirty)
	ignored := func(c *v1alpha1.ServerClaim) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationIgnore)
	}
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		claim  *v1alpha1.ServerClaim
		want   []string
	}{
		"it stays while it has its finalizer": {held, claim(ignored, finalized), []string{stays + `Server "s1" will be powered off and all data on its disks erased` + waits}},
		"what is then kept is said": {server(heldBy("team", "c"), dirty, retain), claim(ignored, finalized), []string{stays +
			`Server "s1" will be powered off; its data is kept (reclaimPolicy Retain) until its serverClaimRef is cleared or its reclaimPolicy is set to Recycle` + waits}},
		"it goes without a release once its finalizer is gone": {held, claim(ignored),
			[]string{goes + ", or a claim of this name takes it back by naming it in spec.serverRef"}},
		"none comes back to a server that names none": {server(annotated(v1alpha1.ClaimUIDAnnotation, "u1"), dirty), claim(ignored), []string{goes}},
		"nothing was booted for it":                   {server(heldBy("team", "c")), claim(ignored, finalized), nil},
	} {
		t.Run(name, func(t *testing.T) {
			naming("s1")(c.claim)
			c.claim.UID = "u1"
			got, warnings := newWorld(t, defaults(t), c.server).ask(PathValidateServerClaim, user, admissionv1.Delete, c.claim, nil)
			if diff := cmp.Diff(c.want, warnings); got != "" || diff != "" {
				t.Error(got, diff)
			}
		})
	}
}

func TestWithoutAGraceADeletionTellsOfNone(t *testing.T) {
	held := server(heldBy("team", "c"), dirty)
	leaving := claim(naming("s1"), func(c *v1alpha1.ServerClaim) { c.UID = "u1" })
	for name, c := range map[string]struct {
		grace time.Duration
		power string
		none  bool
		want  string
	}{
		"a grace is told": {10 * time.Minute, bundle.PowerAfterGrace, false,
			". That begins 10m after the claim has ended; until then metalaw server undo-release s1 takes it back"},
		"a grace that delays the wipe alone": {10 * time.Minute, bundle.PowerImmediate, false,
			". It is shut down at once; the rest begins 10m after the claim has ended; until then metalaw server undo-release s1 takes it back"},
		"the policy has none":               {0, bundle.PowerImmediate, false, ""},
		"the manager is asked to have none": {10 * time.Minute, bundle.PowerImmediate, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := *defaults(t)
			b.Settings.ReleaseGrace, b.Settings.ReleasePower = c.grace, c.power
			k := store(t, held)
			rules := &claimRules{lookup: &lookup{cache: k, reader: k, bundles: revisions{active: &b}}, noReleaseGrace: c.none}
			found := &review.Findings{}
			if err := rules.judgeClaim(t.Context(), review.Change[v1alpha1.ServerClaim]{Old: leaving}, found, map[string]any{}); err != nil {
				t.Fatal(err)
			}
			want := []string{`Server "s1" will be powered off and all data on its disks erased` + c.want}
			if diff := cmp.Diff(want, found.Warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}
