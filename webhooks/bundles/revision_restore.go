// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/canary"
	"github.com/metalaw/metalaw/webhooks/review"
)

// restoredInto is what there is where a revision is restored.
type restoredInto struct {
	// latest is the revision with the last promotion, and promotion its number; empty where none was promoted.
	latest    string
	promotion int64
	// missing says that the restored one is in force and was deleted.
	missing bool
	// here is the revision that a user promoted last in this cluster; empty where no user has: what governs is built
	// in, or restored.
	here string
	// displaces is the revision in force that gives way to the restored one, because that was promoted later; empty where none does,
	// such as where the restored one is in force.
	displaces string
}

// restoredAmong finds out what it means that a revision is restored where others are stored, and one is in force.
func restoredAmong(all []policyv1alpha1.PolicyRevision, r *policyv1alpha1.PolicyRevision, active string) restoredInto {
	in := policyv1alpha1.InForce(all)
	i := restoredInto{missing: r.Name == active, here: promotedHere(all)}
	n := r.Promotion()
	governs := active
	if in != nil {
		governs, i.latest, i.promotion = in.Name, in.Name, in.Promotion()
		i.missing = i.missing || in.Name == r.Name
	}
	if !i.missing && (n > i.promotion || n > 0 && n == i.promotion && r.Name < i.latest) {
		i.displaces = governs
	}
	return i
}

// promotedHere names the revision that a user promoted last in this cluster; empty where no user has. The one that is
// built in and governs first is promoted by no user, and what came back from a backup was promoted elsewhere.
func promotedHere(all []policyv1alpha1.PolicyRevision) string {
	last := policyv1alpha1.InForce(slices.DeleteFunc(slices.Clone(all), func(r policyv1alpha1.PolicyRevision) bool {
		return builtIn(&r) || !r.PromotedHere()
	}))
	if last == nil {
		return ""
	}
	return last.Name
}

// mayNotDisplace names the bundle of the revision that gives way, where that is another than the restored one's and the user may not activate it.
func (l *Rules) mayNotDisplace(
	ctx context.Context, user authenticationv1.UserInfo, all []policyv1alpha1.PolicyRevision, restored, displaced string,
) (string, error) {
	i := slices.IndexFunc(all, func(r policyv1alpha1.PolicyRevision) bool { return r.Name == displaced })
	if i < 0 || builtIn(&all[i]) || all[i].Spec.Bundle == restored {
		return "", nil
	}
	may, err := l.mayActivate(ctx, user, all[i].Spec.Bundle)
	if err != nil || may {
		return "", err
	}
	return all[i].Spec.Bundle, nil
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
	takesEffect := into.displaces != "" || into.missing
	if !takesEffect || v.bundle.Lifecycle == nil {
		return nil
	}
	what, _, err := l.Dropped(ctx, &Examined{Name: v.bundle.Name, Version: v.bundle.Version, Bundle: v.bundle},
		canary.Scope{}.Matcher(v.bundle.Name))
	switch {
	case what == "":
		return err
	case into.missing:
		found.Warn("%s; it was in force before: they stay under their revision until they leave these states", what)
	default:
		found.Deny(field.Forbidden(promotionPath, what+"; "+withoutIt(r.Name)))
	}
	return nil
}

var promotionPath = review.AnnotationsPath.Key(policyv1alpha1.PromotionAnnotation)

// withoutIt is how a revision comes into force that may not be restored with its number.
func withoutIt(name string) string {
	return "restore it without this annotation, and promote it then, which is held to all that every promotion is: " +
		"metalaw policy rollback --to " + name
}

// checkRestore takes a revision back from a backup: its name and its digest have to be those of its content, and where something was
// promoted since, that stays in force.
func checkRestore(c review.Change[policyv1alpha1.PolicyRevision], f revisionFacts, found *review.Findings) {
	if !f.mayActivate {
		found.Deny(field.Forbidden(nil, managersAlone),
			mayNot(nil, c.User, c.New.Spec.Bundle, ", and which restoring a backup takes as well"))
		return
	}
	if f.mayNotDisplace != "" {
		found.Deny(mayNot(promotionPath, c.User, f.mayNotDisplace, "; its revision "+f.restored.displaces+" would give way to the restored one"))
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
	if f.restored.displaces != "" {
		found.Warn("its promotion %d is the latest, so that it is in force at once, on every manager and without waiting for any, "+
			"in the place of %s. To go back, promote that one's ConfigMap again", c.New.Promotion(), f.restored.displaces)
	}
	if n := c.New.Promotion(); f.restored.missing && (n == 0 || n < f.restored.promotion) {
		found.Warn("the revision was in force, and comes back without the number in the annotation %s that keeps it there. It gets that again, "+
			"unless the managers have restarted since it was deleted. See in metalaw policy history what is in force, and promote it where it is not",
			policyv1alpha1.PromotionAnnotation)
	}
}

// checkNumber holds that what was promoted here is not overtaken by what is restored: a promotion waits until every manager has compiled
// the revision, and a restored one does not. It may be as late where nothing was promoted here, so that the revisions of a backup come
// back in any order, and where it is in force and was deleted.
func checkNumber(r *policyv1alpha1.PolicyRevision, into restoredInto, found *review.Findings) {
	text, set := r.Annotations[policyv1alpha1.PromotionAnnotation]
	n := r.Promotion()
	later := n >= into.promotion
	switch {
	case !set:
	case n == 0 || n > policyv1alpha1.MaxRestoredPromotion && (n > into.promotion || later && !into.missing):
		found.Deny(field.Invalid(promotionPath, text, fmt.Sprintf(
			"a promotion has a number from 1 to %d; take the object from the backup unchanged", int64(policyv1alpha1.MaxRestoredPromotion))))
	case later && !into.missing && into.here != "":
		what := fmt.Sprintf("which was promoted here (%d)", into.promotion)
		if into.here != into.latest {
			what = fmt.Sprintf("which has promotion %d, where %s was promoted before", into.promotion, into.here)
		}
		found.Deny(field.Forbidden(promotionPath, fmt.Sprintf("with promotion %d it would come into force at once in the place of %s, %s; %s",
			n, into.latest, what, withoutIt(r.Name))))
	}
}
