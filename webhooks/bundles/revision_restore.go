// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/canary"
	"github.com/metalaw/metalaw/webhooks/review"
)

// restoredInto is what there is where a revision is restored.
type restoredInto struct {
	// promotion is the number of the revision in force; 0 where none was promoted here.
	promotion int64
	// missing says that the restored one is in force and was deleted.
	missing bool
	// ungoverned is the revision without whose promotion nothing governs from now on; empty where something does.
	ungoverned string
}

// restoredAmong finds out what it means that a revision is restored where others are stored, and one is in force.
func restoredAmong(all []policyv1alpha1.PolicyRevision, r *policyv1alpha1.PolicyRevision, active string) restoredInto {
	i := restoredInto{missing: r.Name == active}
	if in := policyv1alpha1.InForce(all); in != nil {
		i.promotion, i.missing = in.Promotion(), i.missing || in.Name == r.Name
	}
	if missing := policyv1alpha1.PromotionMissing(append(slices.Clone(all), *r)); missing != nil && !i.missing {
		i.ungoverned = missing.Name
	}
	return i
}

// judgeRestored holds what comes back from a backup to what every bundle has to pass: an object of this kind can be written by
// hand as well. Who brought what back is told to the API server's audit log.
func (l *Rules) judgeRestored(
	ctx context.Context, change review.Change[policyv1alpha1.PolicyRevision], into restoredInto, found *review.Findings,
) error {
	r := change.New
	files, err := bundle.Unpack(r.Spec.Content)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Time)
	defer cancel()
	v, err := l.Accepted.of(ctx, files)
	if err != nil {
		return fmt.Errorf("the revision %s", unchecked(err))
	}
	switch {
	case v.bundle == nil:
		found.DenyDiagnostics("this version of metalaw does not accept what the revision holds; restore it with the version that made it ("+
			r.Spec.EngineVersion+"), or store a bundle in a ConfigMap instead", v.found)
		return nil
	case v.bundle.Revision.Name != r.Name:
		found.Deny(field.Invalid(field.NewPath("metadata", "name"), r.Name, "its content is that of "+v.bundle.Revision.Name+
			"; take the object from the backup unchanged"))
		return nil
	}
	log := found.Audited()
	log["activated-by"], log["bundle"], log["digest"] = change.User.Username, r.Spec.Bundle, r.Spec.Digest
	if n := r.Promotion(); n > 0 {
		log["promotion"] = strconv.FormatInt(n, 10)
	}
	if !into.missing || v.bundle.Lifecycle == nil {
		return nil
	}
	what, _, err := l.Dropped(ctx, &Examined{Name: v.bundle.Name, Version: v.bundle.Version, Bundle: v.bundle},
		canary.Scope{}.Matcher(v.bundle.Name))
	if what != "" {
		found.Warn("%s; it was in force before: they stay under their revision until they leave these states", what)
		return nil
	}
	return err
}

var promotionPath = review.AnnotationsPath.Key(policyv1alpha1.PromotionAnnotation)

// checkRestore takes a revision back from a backup: its name and its digest have to be those of its content.
func checkRestore(c review.Change[policyv1alpha1.PolicyRevision], f revisionFacts, found *review.Findings) {
	if !f.mayActivate {
		found.Deny(field.Forbidden(nil, managersAlone),
			mayNot(nil, c.User, c.New.Spec.Bundle, ", and which restoring a backup takes as well"))
		return
	}
	spec := c.New.Spec
	path := field.NewPath("spec")
	files, err := bundle.Unpack(spec.Content)
	if err != nil {
		found.Deny(field.Invalid(path.Child("content"), "", err.Error()+"; take the object from the backup unchanged"))
		return
	}
	if digest := files.Digest(); digest != spec.Digest {
		found.Deny(field.Invalid(path.Child("digest"), spec.Digest, "the content has digest "+digest+"; take the object from the backup unchanged"))
	}
	if name := bundle.RevisionName(spec.Bundle, spec.Version, spec.Digest); name != c.New.Name {
		found.Deny(field.Invalid(field.NewPath("metadata", "name"), c.New.Name, "a revision of this bundle, version and digest is named "+name))
	}
	checkNumber(c.New, f.restored, found)
	if !found.Pass() {
		return
	}
	found.Warn("a revision is restored, as from a backup; a new bundle is stored in a ConfigMap instead")
	if f.restored.ungoverned != "" {
		found.Warn("no revision was promoted in this cluster, so that no policy governs until one is: "+
			"metalaw policy rollback --to %s", f.restored.ungoverned)
	}
	if n := c.New.Promotion(); f.restored.missing && (n == 0 || n < f.restored.promotion) {
		found.Warn("the revision was in force, and comes back without the number in the annotation %s that keeps it there. It gets that again, "+
			"unless the managers have restarted since it was deleted. See in metalaw policy history what is in force, and promote it where it is not",
			policyv1alpha1.PromotionAnnotation)
	}
}

// checkNumber holds that a restored number leaves room for those that follow. One below that in force may be any.
func checkNumber(r *policyv1alpha1.PolicyRevision, into restoredInto, found *review.Findings) {
	text, set := r.Annotations[policyv1alpha1.PromotionAnnotation]
	n := r.Promotion()
	highest := n > into.promotion || n == into.promotion && !into.missing
	if set && (n == 0 || n > policyv1alpha1.MaxRestoredPromotion && highest) {
		found.Deny(field.Invalid(promotionPath, text, fmt.Sprintf(
			"a promotion has a number from 1 to %d; take the object from the backup unchanged", int64(policyv1alpha1.MaxRestoredPromotion))))
	}
}
