// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/webhooks/review"
)

// activator is the ClusterRole of the shipped manifests that holds the right to change what governs.
const activator = "metalaw-policy-activator"

// The uses of a revision, as they are told.
const (
	useInForce = "in force"
	useCanary  = "a canary"
	useShadow  = "evaluated in shadow"
)

// use says what a revision is used for; empty where it is for nothing. promoted is the one with the last promotion.
func use(r *policyv1alpha1.PolicyRevision, promoted string) string {
	switch {
	case r.Name == promoted, r.Status.Stage == policyv1alpha1.StageActive, r.Status.Stage == policyv1alpha1.StageEmbedded,
		meta.IsStatusConditionTrue(r.Status.Conditions, policyv1alpha1.ConditionActive):
		return useInForce
	case r.Status.Stage == policyv1alpha1.StageCanary:
		return useCanary
	case r.Status.Stage == policyv1alpha1.StageShadow:
		return useShadow
	}
	return ""
}

// lastPromoted names the revision that is in force by its promotion.
func lastPromoted(all []policyv1alpha1.PolicyRevision) string {
	if r := policyv1alpha1.InForce(all); r != nil {
		return r.Name
	}
	return ""
}

// governance is what a head governs by.
type governance struct {
	// active are the revisions made from the head that are in force, and canaries those that are a canary.
	active, canaries []*policyv1alpha1.PolicyRevision
	// pending says that the stage lets the head govern, and that this has not come about yet.
	pending bool
	// displaced are the revisions of other bundles from which the change takes servers.
	displaced []*policyv1alpha1.PolicyRevision
}

func (g governance) any() bool { return g.pending || len(g.active)+len(g.canaries) > 0 }

// governing looks for what a head governs by at present. Its own label does not tell: a head that was superseded bears
// stage active still, and one that lost the label is still in force.
func governing(h *head, all []policyv1alpha1.PolicyRevision) governance {
	var g governance
	promoted, overtaken := lastPromoted(all), false
	for i := range all {
		r := &all[i]
		if r.Spec.Bundle != h.name || !madeFrom(r, h.object) {
			continue
		}
		switch use(r, promoted) {
		case useInForce:
			g.active = append(g.active, r)
		case useCanary:
			g.canaries = append(g.canaries, r)
		}
		overtaken = overtaken || r.Status.Stage == policyv1alpha1.StageSuperseded
	}
	g.pending = h.governs() && !g.any() && !overtaken
	return g
}

// madeFrom says that a ConfigMap is one of those which hold a revision, or that it was made from. One that was deleted since and created
// anew under the same name is none, unless it holds the same again.
func madeFrom(r *policyv1alpha1.PolicyRevision, cm *corev1.ConfigMap) bool {
	if slices.ContainsFunc(r.Status.Heads, func(h policyv1alpha1.LabelledHead) bool { return h.Name == cm.Name }) {
		return true
	}
	source, named := r.Spec.Source, r.Status.Head == cm.Name && r.Status.LabelledStage != policyv1alpha1.LabelledNone
	if named || source == nil || source.Name != cm.Name {
		return named
	}
	return source.UID != "" && source.UID == cm.UID || mayHold(r, cm)
}

// mayHold says that the files of a ConfigMap are those of a revision; of one that keeps some in others that is not known.
func mayHold(r *policyv1alpha1.PolicyRevision, cm *corev1.ConfigMap) bool {
	if _, parted := cm.Data[bundle.PartsFile]; parted {
		return true
	}
	files, _ := bundle.Assemble(cm.Name, cm.Data, nil)
	return r.Holds(r.Spec.Bundle, files.Digest())
}

// puts says that a change puts a head where it governs, or lets it govern other servers.
func puts(was, is *head) bool {
	if !is.governs() {
		return false
	}
	return was == nil || was.name != is.name || was.stage != is.stage ||
		is.stage == policyv1alpha1.LabelCanary && (!was.sameAnnotation(is, policyv1alpha1.CanaryServersAnnotation) ||
			!was.sameAnnotation(is, policyv1alpha1.CanaryPercentAnnotation))
}

// takes says that a change takes a head away from where it governs: by its stage, or because it is no head any more.
func takes(was, is *head, g governance) bool {
	if was == nil {
		return false
	}
	if is == nil || is.name != was.name {
		return g.any()
	}
	return was.governs() && was.stage != is.stage
}

// concern is a bundle that a user must be allowed to activate, and what a refusal says besides.
type concern struct{ bundle, otherwise string }

// StoreElsewise is what an author may do instead of letting a bundle govern.
const StoreElsewise = "; an author stores it with stage draft or shadow"

// concerned are the bundles that a user must be allowed to activate: that which is taken away from where it governs, that which is put
// there, and those from which it takes servers.
func concerned(was, is *head, g governance) []concern {
	var all []concern
	add := func(bundle, otherwise string) {
		if !slices.ContainsFunc(all, func(c concern) bool { return c.bundle == bundle }) {
			all = append(all, concern{bundle, otherwise})
		}
	}
	instead := ""
	if puts(was, is) {
		instead = StoreElsewise
	}
	if takes(was, is, g) {
		add(was.name, instead)
	}
	if puts(was, is) {
		add(is.name, instead)
	}
	for _, r := range g.displaced {
		add(r.Spec.Bundle, inPlaceOf(is, r))
	}
	return all
}

// mayActivate asks whether a user may change by what a bundle governs.
func (l *Rules) mayActivate(ctx context.Context, user authenticationv1.UserInfo, name string) (bool, error) {
	return l.May(ctx, user, authorizationv1.ResourceAttributes{
		Verb: policyv1alpha1.ActivateVerb, Group: policyv1alpha1.GroupVersion.Group, Resource: "policyrevisions", Name: name})
}

// mayNot refuses a user who may not activate a bundle.
func mayNot(path *field.Path, user authenticationv1.UserInfo, name, otherwise string) *field.Error {
	return field.Forbidden(path, fmt.Sprintf(
		"user %q may not change by what bundle %q governs: that takes the verb %s on policyrevisions.%s of this name, which ClusterRole %s gives%s",
		user.Username, name, policyv1alpha1.ActivateVerb, policyv1alpha1.GroupVersion.Group, activator, otherwise))
}

// checkPromoted tells that a canary is to govern every server that has paused itself.
func checkPromoted(is *head, g governance, found *review.Findings) {
	for _, r := range slices.Concat(g.active, g.canaries) {
		if c := r.Status.Canary; r.Status.Stage == policyv1alpha1.StageCanary && c != nil && c.Paused {
			found.Warn("revision %s is a canary that has paused itself: %s. Promoted as it is, it governs the whole fleet; "+
				"to end the canary instead, label ConfigMap %s %s=%s, then mend the bundle, and try the new version",
				r.Name, c.Cost(), is.object.Name, policyv1alpha1.StageLabel, policyv1alpha1.LabelShadow)
		}
	}
}

// checkLeaving tells what becomes of the servers when a head that governs goes.
func checkLeaving(g governance, found *review.Findings) {
	for _, r := range g.active {
		found.Warn("revision %s stays in force, as the last good one, until another is promoted: label another version of the bundle %s=%s",
			r.Name, policyv1alpha1.StageLabel, policyv1alpha1.LabelActive)
	}
	for _, r := range g.canaries {
		found.Warn("revision %s is a canary, which ends: no further server adopts it, and those under it adopt what is in force "+
			"in their next stable state", r.Name)
	}
}

// Record is what is written of an activation. Its time tells two of them apart within a second: a new record on a label that
// is active already is a promotion.
func Record(user authenticationv1.UserInfo, digest string, at time.Time) string {
	return fmt.Sprintf("%s %s %s", review.NameOf(user), digest, at.UTC().Format(time.RFC3339Nano))
}

// Records says that a text is the record of an activation by a user, at any time.
func Records(text string, user authenticationv1.UserInfo, digest string) bool {
	return strings.HasPrefix(text, review.NameOf(user)+" "+digest+" ") && recordsSome(text, digest)
}

// recordsSome says that a text is the record of an activation by any user.
func recordsSome(text, digest string) bool {
	_, at, of := strings.Cut(text, " "+digest+" ")
	_, err := time.Parse(time.RFC3339Nano, strings.TrimSuffix(at, policyv1alpha1.ActivationRestored))
	return of && err == nil
}

// formerRecord is the record of the last activation. That of an object that was no head is worth nothing: any user may
// have written it.
func formerRecord(was *head) string {
	if was == nil {
		return ""
	}
	return was.object.Annotations[policyv1alpha1.ActivatedByAnnotation]
}

// checkRecord holds that admission alone writes who activated a bundle.
func checkRecord(user authenticationv1.UserInfo, was, is *head, c *Examined, found *review.Findings) {
	text := is.object.Annotations[policyv1alpha1.ActivatedByAnnotation]
	path := review.AnnotationsPath.Key(policyv1alpha1.ActivatedByAnnotation)
	if puts(was, is) {
		if c.accepted() && !Records(text, user, c.digest) {
			found.Deny(field.Forbidden(path, "admission writes who activates; leave it out"))
		}
		return
	}
	if text != formerRecord(was) {
		found.Deny(field.Forbidden(path, "admission writes who activates; keep it as it is stored"))
	}
}

// tellRestored says of a ConfigMap from a backup what its label is worth.
func tellRestored(is *head, found *review.Findings) {
	text := is.object.Annotations[policyv1alpha1.ActivatedByAnnotation]
	if is.stage == policyv1alpha1.LabelActive && strings.HasSuffix(text, policyv1alpha1.ActivationRestored) {
		found.Warn("the ConfigMap bears the record of a former activation, as one from a backup does. Where its PolicyRevision came from a backup "+
			"too, that revision's promotion says what is in force, and this label is none. To promote it: metalaw policy promote %s", is.object.Name)
	}
}
