// SPDX-License-Identifier: Apache-2.0

// Package bundles holds the admission rules about policy bundles in ConfigMaps and about PolicyRevisions.
package bundles

import (
	"context"
	"errors"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// Rules are the rules about bundles, with what they need. What they read of the cache is shared and must not be changed.
type Rules struct {
	// Cache is read first, and Reader reads past it.
	Cache, Reader client.Reader
	Bundles       review.Bundles
	// Namespace is the manager's; bundles count there only.
	Namespace string
	// May asks whether a user holds a right.
	May      func(ctx context.Context, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error)
	Accepted *Acceptances
}

// Time is how long a bundle may take to be checked. It is less than what config/webhook gives the hooks that check one, so
// that who asks gets to know what took so long.
const Time = 13 * time.Second

// JudgeBundle answers for a ConfigMap that is, or was, the head of a bundle or a part of one.
func (l *Rules) JudgeBundle(ctx context.Context, c review.Change[corev1.ConfigMap], found *review.Findings, _ map[string]any) error {
	if l.strays(c, found) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, Time)
	defer cancel()
	if err := l.judgePart(ctx, c, found); err != nil {
		return err
	}
	return l.judgeHead(ctx, c, found)
}

// strays says that the object is in another namespace than the manager's, where it means nothing.
func (l *Rules) strays(c review.Change[corev1.ConfigMap], found *review.Findings) bool {
	o := c.New
	if c.Deleted() {
		o = c.Old
	}
	if o.Namespace == l.Namespace {
		return false
	}
	for _, label := range []string{policyv1alpha1.BundleLabel, policyv1alpha1.BundlePartLabel} {
		if _, bears := o.Labels[label]; bears && !c.Deleted() {
			found.Warn("label %s means nothing in namespace %s: policy bundles count in namespace %s only", label, o.Namespace, l.Namespace)
		}
	}
	return true
}

func (l *Rules) judgeHead(ctx context.Context, c review.Change[corev1.ConfigMap], found *review.Findings) error {
	was, is := headOf(c.Old), headOf(c.New)
	g, err := l.governance(ctx, was, is)
	if err != nil {
		return err
	}
	if err := l.judgeRights(ctx, c, was, is, g, found); err != nil {
		return err
	}
	switch {
	case was != nil && is != nil && is.name == was.name && is.stage == policyv1alpha1.LabelActive && was.sameContent(is):
		checkPromoted(is, g, found)
	case takes(was, is, g):
		checkLeaving(g, found)
	}
	if is == nil {
		return nil
	}
	checkStage(is, found)
	checkBinary(is, found)
	if was != nil {
		checkKept(was, is, found)
	}
	seen, err := l.judgeContent(ctx, was, is, found)
	if err != nil {
		return err
	}
	if err := l.judgeShadows(ctx, was, is, seen, found); err != nil {
		return err
	}
	checkRecord(c.User, was, is, seen, found)
	if !puts(was, is) {
		return nil
	}
	audit(found, c, is, seen)
	tellRestored(is, found)
	return l.judgeDropped(ctx, is, seen, found)
}

// governance looks for what a head governs by, where a change may end that, and for what the head would govern in the place of.
func (l *Rules) governance(ctx context.Context, was, is *head) (governance, error) {
	ends := was != nil && (is == nil || is.name != was.name || is.stage != was.stage)
	if !ends && !puts(was, is) {
		return governance{}, nil
	}
	all, err := l.revisions(ctx)
	if err != nil {
		return governance{}, err
	}
	var g governance
	if ends {
		g = governing(was, all)
	}
	if puts(was, is) {
		g.displaced = displaced(is, all)
	}
	return g, nil
}

// judgeContent has the content checked where it, or what it is for, is another than before. A draft is stored, also one
// that is not accepted.
func (l *Rules) judgeContent(ctx context.Context, was, is *head, found *review.Findings) (*Examined, error) {
	if was != nil && was.name == is.name && was.stage == is.stage && was.sameContent(is) && !puts(was, is) {
		return &Examined{}, nil
	}
	seen, err := l.examine(ctx, is)
	switch {
	case err == nil:
		checkContent(is, seen, found)
		return seen, nil
	case is.kept():
		return nil, err
	}
	found.Warn("the bundle is stored as a draft, and %s", unchecked(err))
	return &Examined{}, nil
}

// unchecked says why a bundle could not be checked.
func unchecked(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "checking it took longer than " + Time.String() + ": " + err.Error()
	}
	return err.Error()
}

// judgeRights asks for the right to change what governs, for each bundle that is concerned.
func (l *Rules) judgeRights(ctx context.Context, c review.Change[corev1.ConfigMap], was, is *head, g governance, found *review.Findings) error {
	for _, one := range concerned(was, is, g) {
		allowed, err := l.mayActivate(ctx, c.User, one.bundle)
		if err != nil {
			return err
		}
		if !allowed {
			found.Deny(mayNot(governingField(was, is), c.User, one.bundle, one.otherwise))
		}
	}
	return nil
}

// governingField is what a change of a head changes by which it governs: its stage, or the scope of a canary that stays one; nil
// where the head is deleted.
func governingField(was, is *head) *field.Path {
	switch {
	case is == nil:
		return nil
	case was == nil || was.name != is.name || was.stage != is.stage:
		return labelsPath.Key(policyv1alpha1.StageLabel)
	case !was.sameAnnotation(is, policyv1alpha1.CanaryServersAnnotation):
		return review.AnnotationsPath.Key(policyv1alpha1.CanaryServersAnnotation)
	default:
		return review.AnnotationsPath.Key(policyv1alpha1.CanaryPercentAnnotation)
	}
}

// audit tells the API server's audit log who lets what govern.
func audit(found *review.Findings, c review.Change[corev1.ConfigMap], is *head, seen *Examined) {
	log := found.Audited()
	log["activated-by"], log["bundle"], log["stage"], log["digest"] = c.User.Username, is.name, is.stage, seen.digest
	for key, name := range map[string]string{"servers": policyv1alpha1.CanaryServersAnnotation, "percent": policyv1alpha1.CanaryPercentAnnotation} {
		if value, set := is.object.Annotations[name]; set && is.stage == policyv1alpha1.LabelCanary {
			log[key] = value
		}
	}
}
