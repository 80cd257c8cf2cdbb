// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/webhooks/review"
)

var (
	serverRefPath = field.NewPath("spec", "serverRef")
	selectorPath  = field.NewPath("spec", "serverSelector")
)

// claimFacts is what was looked up for a ServerClaim.
type claimFacts struct {
	// server is what spec.serverRef names; nil where it names none or there is none.
	server *v1alpha1.Server
	// usage is how many claims the namespace has; nil where there is no quota.
	usage *usage
	// lives says that a claim of this name is stored already, so that a creation comes to nothing. It is looked up only
	// where server names the claim.
	lives bool
	// bundle is the one in force.
	bundle *bundle.Bundle
	// grace is how long a release waits before it takes effect.
	grace time.Duration
}

// checkClaim holds a claim against what the fleet is. What a stored claim says already is not held against it again: the
// server of a bound claim may be gone, and the claim must still be able to change its image.
func checkClaim(c review.Change[v1alpha1.ServerClaim], f claimFacts, found *review.Findings) {
	if c.Deleted() {
		checkProtected(c.Old, "ServerClaim", found)
		if found.Pass() {
			checkClaimDeletion(c.Old, f, found)
		}
		return
	}
	if checkLength(c, found) {
		return // and nobody looks at each of its parts
	}
	if selectorChanges(c) {
		found.Deny(selectorErrors(c.New)...)
		checkInventoryLabels(c.New, f.bundle, found)
	}
	if refChanges(c) {
		checkServerRef(c.New, f, found)
		checkTakesOver(c, f, found)
	}
	checkAgree(c, f.server, found)
	checkKeepsServer(c, found)
	checkPlacement(c, found)
	checkGang(c, f.server, found)
	checkTolerations(c, found)
	checkSecretNames(c, found)
	checkPriority(c, f.bundle, found)
	checkMinimumTerm(c, found)
	review.WarnApplied(c.Old, c.New, found)
	review.CheckYesNo(c.Old, c.New, v1alpha1.DrainRequiredAnnotation, found)
	review.CheckNames(c.Old, c.New, "ServerClaim", claimAnnotations, found)
	review.CheckYesNo(c.Old, c.New, v1alpha1.ProtectAnnotation, found)
	checkQuota(f.usage, found)
}

// checkSecretNames: a reference that is given names a Secret.
func checkSecretNames(c review.Change[v1alpha1.ServerClaim], found *review.Findings) {
	former := v1alpha1.ServerClaimSpec{}
	if !c.Created() {
		former = c.Old.Spec
	}
	for _, ref := range []struct {
		name    string
		is, was *corev1.LocalObjectReference
	}{
		{"ignitionSecretRef", c.New.Spec.IgnitionSecretRef, former.IgnitionSecretRef},
		{"userDataRef", c.New.Spec.UserDataRef, former.UserDataRef},
	} {
		if ref.is != nil && ref.is.Name == "" && (ref.was == nil || ref.was.Name != "") {
			found.Deny(field.Required(field.NewPath("spec", ref.name, "name"),
				"write the name of a Secret in the claim's namespace, or leave "+ref.name+" out"))
		}
	}
}

func selectorChanges(c review.Change[v1alpha1.ServerClaim]) bool {
	return c.New.Spec.ServerSelector != nil &&
		(c.Created() || !equality.Semantic.DeepEqual(c.Old.Spec.ServerSelector, c.New.Spec.ServerSelector))
}

func refChanges(c review.Change[v1alpha1.ServerClaim]) bool {
	return refOf(c.New) != "" && (c.Created() || refOf(c.Old) != refOf(c.New))
}

func refOf(c *v1alpha1.ServerClaim) string {
	if c.Spec.ServerRef == nil {
		return ""
	}
	return c.Spec.ServerRef.Name
}

// selectorErrors names every part of the selector that has no meaning.
func selectorErrors(c *v1alpha1.ServerClaim) field.ErrorList {
	errs := metavalidation.ValidateLabelSelector(c.Spec.ServerSelector, metavalidation.LabelSelectorValidationOptions{}, selectorPath)
	slices.SortFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.ErrorBody(), b.ErrorBody()))
	})
	if len(errs) > 0 {
		return errs
	}
	// What the scheduler cannot read must not be stored, whoever finds it.
	if _, err := policies.ClaimSpecOf(c); err != nil {
		return field.ErrorList{field.Invalid(selectorPath, metav1.FormatLabelSelector(c.Spec.ServerSelector), err.Error())}
	}
	return nil
}

// checkInventoryLabels warns of a selector for labels that the policy in force keeps off the Servers.
func checkInventoryLabels(c *v1alpha1.ServerClaim, b *bundle.Bundle, found *review.Findings) {
	asked := policies.AsksInventory(c)
	if len(asked) == 0 || !b.Settings.NoInventoryLabels {
		return
	}
	found.Warn("%s: the policy in force (%s) keeps the hardware out of the labels of Servers (labels.inventory: false), so that no Server has %s. "+
		"Ask for facts such as server.gpus in annotation %s instead", selectorPath, b.Revision.Name, strings.Join(asked, ", "),
		v1alpha1.PlacementAnnotation)
}

// checkLength refuses what has more parts than are judged, and says whether it did.
func checkLength(c review.Change[v1alpha1.ServerClaim], found *review.Findings) bool {
	err := limitError(c.New)
	if err == nil || !c.Created() && limitError(c.Old) != nil {
		return false
	}
	found.Deny(err)
	return true
}

// limitError names what has more parts than are judged; nil where nothing has.
func limitError(c *v1alpha1.ServerClaim) *field.Error {
	_, err := policies.ClaimSpecOf(c)
	limit, ok := errors.AsType[*policies.LimitError](err)
	if !ok {
		return nil
	}
	return &field.Error{Type: field.ErrorTypeTooMany, Field: limit.Field, BadValue: limit.Have, Detail: limit.Detail()}
}

// checkServerRef refuses a name that no Server can have, and warns of a Server that is not there yet, or that another holds:
// clients create a claim and its Server in any order.
func checkServerRef(c *v1alpha1.ServerClaim, f claimFacts, found *review.Findings) {
	if why := validation.NameIsDNSSubdomain(refOf(c), false); len(why) > 0 {
		found.Deny(field.Invalid(serverRefPath.Child("name"), refOf(c), "no Server has such a name: "+strings.Join(why, "; ")))
		return
	}
	if f.server == nil {
		found.Warn("%s: there is no Server %q; the claim waits until there is one, and its condition Bound says so. "+
			"The serverRef cannot be changed: if the name is wrong, delete the claim and create another", serverRefPath.Child("name"), refOf(c))
		return
	}
	switch {
	case v1alpha1.KeptAfterRelease(f.server):
		found.Warn("the claim that held Server %q has ended, and its data is kept (reclaimPolicy Retain). This claim waits until an operator "+
			"clears the server's spec.serverClaimRef or sets its spec.reclaimPolicy to Recycle, which gives that data up", refOf(c))
	case f.server.Spec.ServerClaimRef != nil && !namesClaim(f.server, c):
		found.Warn("Server %q is held by another claim; this one waits until it is released", refOf(c))
	}
}

// pairs says that a change brings serverRef and serverSelector together: the claim has both then, and one of them is new.
func pairs(c review.Change[v1alpha1.ServerClaim]) bool {
	return refOf(c.New) != "" && c.New.Spec.ServerSelector != nil && (refChanges(c) || selectorChanges(c))
}

// checkAgree: the selector matches the server that the claim names, since neither can be taken back; a claim that is bound would find
// out once it has lost its server. The labels are no matter where the claim comes to name the server that is held for it or for a former
// one of its name: it gets that one by no selector, and the labels may have changed since. Nor are they where the manager names the
// server, which matched when it was chosen.
func checkAgree(c review.Change[v1alpha1.ServerClaim], s *v1alpha1.Server, found *review.Findings) {
	if !pairs(c) || s == nil || c.ByManager {
		return
	}
	addsSelector := !c.Created() && selectorChanges(c)
	if !addsSelector && policies.ComesBack(c.New, s) {
		return
	}
	spec, err := policies.ClaimSpecOf(c.New)
	if err == nil && !spec.Selector.Matches(s.Labels) {
		found.Deny(field.Invalid(selectorPath, metav1.FormatLabelSelector(c.New.Spec.ServerSelector), fmt.Sprintf(
			"it does not match the labels of Server %q, which serverRef names, and both must match; take one of the two out", refOf(c.New))))
	}
}

// checkTakesOver: a server that a former claim of this name holds becomes this claim's, with all that is on it. So a claim
// restored from a backup gets its machine back; whoever only wanted a fresh one has to know. Where the claim that holds it lives,
// nothing is taken over: what is created again is refused by its name, or only tried.
func checkTakesOver(c review.Change[v1alpha1.ServerClaim], f claimFacts, found *review.Findings) {
	s := f.server
	isItself := !c.Created() && s != nil && s.Annotations[v1alpha1.ClaimUIDAnnotation] == string(c.New.UID)
	if s == nil || !namesClaim(s, c.New) || isItself || f.lives {
		return
	}
	if v1alpha1.BindingEnded(s) && !v1alpha1.KeptAfterRelease(s) { // of one that is kept checkServerRef tells
		found.Warn("Server %q is still held by the former claim of this name, whose release is recorded; "+
			"this claim waits until the server is Available again", s.Name)
		return
	}
	if v1alpha1.BindingEnded(s) {
		return
	}
	data := "whatever is on its disks"
	if isDirty(s) {
		data = "its data: nothing was erased since"
	}
	found.Warn("this claim takes over Server %q of the former claim of this name, with %s. Where that is not meant, "+
		"delete this claim, which releases the server, and claim another one", s.Name, data)
}

// checkKeepsServer: clients follow serverRef once it is there. The CRD says the same.
func checkKeepsServer(c review.Change[v1alpha1.ServerClaim], found *review.Findings) {
	if !c.Created() && refOf(c.Old) != "" && refOf(c.New) != refOf(c.Old) {
		found.Deny(field.Forbidden(serverRefPath, "it cannot change once it is set; delete the claim and create another"))
	}
}

// checkClaimDeletion tells what becomes of the data. Nothing is denied here: a claim that nobody protects can be given up.
func checkClaimDeletion(c *v1alpha1.ServerClaim, f claimFacts, found *review.Findings) {
	fate := releaseWords(c, f)
	if fate == "" {
		return
	}
	if !v1alpha1.Ignored(c) {
		found.Warn("%s", fate)
		return
	}
	alone := fmt.Sprintf("annotation %s=%s", v1alpha1.OperationAnnotation, c.Annotations[v1alpha1.OperationAnnotation])
	if slices.Contains(c.Finalizers, v1alpha1.FinalizerServerClaim) {
		found.Warn("this claim is left alone (%s): it stays, and keeps its server, until that annotation is removed; then: %s", alone, fate)
		return
	}
	back := ""
	if namesClaim(f.server, c) {
		back = ", or a claim of this name takes it back by naming it in spec.serverRef"
	}
	found.Warn("this claim is left alone (%s) and has no finalizer %s, so that it goes without a release. Server %q stays as it is, with its "+
		"data, until an operator releases it%s", alone, v1alpha1.FinalizerServerClaim, f.server.Name, back)
}

// releaseWords says what becomes of the data of a claim's server once the claim is released; empty where none is at stake.
func releaseWords(c *v1alpha1.ServerClaim, f claimFacts) string {
	s := f.server
	if s == nil || !isDirty(s) {
		return "" // nothing was prepared for this claim
	}
	isHolder := s.Annotations[v1alpha1.ClaimUIDAnnotation] == string(c.UID)
	switch {
	case s.Spec.ServerClaimRef == nil && !isHolder:
		return ""
	case s.Spec.ServerClaimRef == nil && f.bundle.Settings.Sanitization == bundle.SanitizationNone:
		return fmt.Sprintf("Server %q still records this claim as its holder, though its serverClaimRef was cleared. Deleting the claim "+
			"counts as its release, and the server may be offered again; its data is NOT erased (sanitization: none)", s.Name)
	case s.Spec.ServerClaimRef == nil:
		return fmt.Sprintf("Server %q still records this claim as its holder, though its serverClaimRef was cleared. Deleting the claim "+
			"counts as its release, and all data on the server's disks will be erased", s.Name)
	case !namesClaim(s, c):
		return ""
	}
	return heldWords(s, f) + graceWords(s, f)
}

// heldWords says what becomes of the data of a server that names its claim once the claim is released.
func heldWords(s *v1alpha1.Server, f claimFacts) string {
	switch {
	case s.Spec.ReclaimPolicy == v1alpha1.ReclaimPolicyRetain:
		return fmt.Sprintf("Server %q will be powered off; its data is kept (reclaimPolicy Retain) until its serverClaimRef is cleared "+
			"or its reclaimPolicy is set to Recycle", s.Name)
	case f.bundle.Settings.Sanitization == bundle.SanitizationNone:
		return fmt.Sprintf("Server %q will be powered off and offered again; its data is NOT erased (sanitization: none)", s.Name)
	case isIdle(s):
		return fmt.Sprintf("nothing has run on Server %q for this claim; all data on its disks will be erased all the same, because it was made "+
			"ready to boot", s.Name)
	}
	return fmt.Sprintf("Server %q will be powered off and all data on its disks erased", s.Name)
}

// graceWords says how long the data of a server stays after its claim has ended, and what takes that back.
func graceWords(s *v1alpha1.Server, f claimFacts) string {
	if f.grace <= 0 {
		return ""
	}
	begins := ". That begins"
	if f.bundle.Settings.ReleasePower == bundle.PowerImmediate && !isIdle(s) {
		begins = ". It is shut down at once; the rest begins"
	}
	return fmt.Sprintf("%s %s after the claim has ended; until then metalaw server undo-release %s takes it back",
		begins, duration.HumanDuration(f.grace), s.Name)
}

// isIdle says that a claim found a server free, and that the server was off ever since: it was neither seen on nor switched on.
func isIdle(s *v1alpha1.Server) bool {
	l := s.Status.Lifecycle
	return !policies.BootedForClaim(s) && s.Status.PowerState == v1alpha1.PowerStateOff && l.SeenOnAt == nil &&
		(l.Request == nil || l.Request.Entry != 0 && l.Request.Entry != l.Entry)
}

// namesClaim says that a server names a claim, or a former one of that name.
func namesClaim(s *v1alpha1.Server, c *v1alpha1.ServerClaim) bool {
	ref := s.Spec.ServerClaimRef
	return ref != nil && ref.Namespace == c.Namespace && ref.Name == c.Name
}

func isDirty(s *v1alpha1.Server) bool {
	return s.Status.Lifecycle != nil && slices.Contains(s.Status.Lifecycle.Marks, policies.MarkDirty)
}

// judgeClaim looks up what checkClaim needs. The bundle's rules get to know serverExists where the request makes it a question.
func (l *claimRules) judgeClaim(
	ctx context.Context, c review.Change[v1alpha1.ServerClaim], found *review.Findings, facts map[string]any,
) (err error) {
	b := l.bundles.Active()
	f := claimFacts{bundle: b, grace: b.Settings.ReleaseGrace}
	if l.noReleaseGrace {
		f.grace = 0
	}
	name := ""
	switch {
	case c.Deleted():
		name = refOf(c.Old)
	case refChanges(c), joinsByName(c), pairs(c):
		name = refOf(c.New)
	}
	if name != "" {
		if f.server, err = get[v1alpha1.Server](ctx, l.lookup, name); err != nil {
			return err
		}
		if c.Deleted() || refChanges(c) {
			facts["serverExists"] = f.server != nil
		}
	}
	if f.lives, err = l.lives(ctx, c, f.server); err != nil {
		return err
	}
	if f.usage, err = l.usage(ctx, c, f.server, b); err != nil {
		return err
	}
	checkClaim(c, f, found)
	return nil
}

// lives says that a claim which is created, and which the server names, is stored already and is not being deleted. It is asked past
// the cache, which may not know yet that a former claim is gone.
func (l *claimRules) lives(ctx context.Context, c review.Change[v1alpha1.ServerClaim], s *v1alpha1.Server) (bool, error) {
	if !c.Created() || s == nil || !namesClaim(s, c.New) {
		return false, nil
	}
	var stored v1alpha1.ServerClaim
	err := l.reader.Get(ctx, client.ObjectKeyFromObject(c.New), &stored)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claim %s/%s cannot be read: %w", c.New.Namespace, c.New.Name, err)
	}
	return stored.DeletionTimestamp.IsZero(), nil
}
