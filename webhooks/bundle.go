// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// bundleTime is how long a bundle may take to be checked. It is less than what config/webhook gives the hooks that check one, so
// that who asks gets to know what took so long.
const bundleTime = 13 * time.Second

// judgeBundle answers for a ConfigMap that is, or was, the head of a bundle or a part of one.
func (l *bundleRules) judgeBundle(ctx context.Context, c change[corev1.ConfigMap]) (findings, map[string]any, error) {
	var found findings
	if l.strays(c, &found) {
		return found, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, bundleTime)
	defer cancel()
	if err := l.judgePart(ctx, c, &found); err != nil {
		return found, nil, err
	}
	err := l.judgeHead(ctx, c, &found)
	return found, nil, err
}

// strays says that the object is in another namespace than the manager's, where it means nothing.
func (l *bundleRules) strays(c change[corev1.ConfigMap], found *findings) bool {
	o := c.new
	if c.deleted() {
		o = c.old
	}
	if o.Namespace == l.namespace {
		return false
	}
	for _, label := range []string{policyv1alpha1.BundleLabel, policyv1alpha1.BundlePartLabel} {
		if _, bears := o.Labels[label]; bears && !c.deleted() {
			found.warn("label %s means nothing in namespace %s: policy bundles count in namespace %s only", label, o.Namespace, l.namespace)
		}
	}
	return true
}

func (l *bundleRules) judgeHead(ctx context.Context, c change[corev1.ConfigMap], found *findings) error {
	was, is := headOf(c.old), headOf(c.new)
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
	checkRecord(c.user, was, is, seen, found)
	if !puts(was, is) {
		return nil
	}
	audit(found, c, is, seen)
	tellRestored(is, found)
	return l.judgeDropped(ctx, is, seen, found)
}

// governance looks for what a head governs by, where a change may end that, and for what the head would govern in the place of.
func (l *bundleRules) governance(ctx context.Context, was, is *head) (governance, error) {
	ends := was != nil && (is == nil || is.name != was.name || is.stage != was.stage)
	if !ends && !puts(was, is) {
		return governance{}, nil
	}
	var all policyv1alpha1.PolicyRevisionList
	if err := l.cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return governance{}, fmt.Errorf("the policy revisions cannot be read: %w", err)
	}
	var g governance
	if ends {
		g = governing(was, all.Items)
	}
	if puts(was, is) {
		g.displaced = displaced(is, all.Items)
	}
	return g, nil
}

// judgeContent has the content checked where it, or what it is for, is another than before. A draft is stored whatever
// comes of it.
func (l *bundleRules) judgeContent(ctx context.Context, was, is *head, found *findings) (*examined, error) {
	if was != nil && was.name == is.name && was.stage == is.stage && was.sameContent(is) && !puts(was, is) {
		return &examined{}, nil
	}
	seen, err := l.examine(ctx, is)
	switch {
	case err == nil:
		checkContent(is, seen, found)
		return seen, nil
	case is.kept():
		return nil, err
	}
	found.warn("the bundle is stored as a draft, and %s", unchecked(err))
	return &examined{}, nil
}

// unchecked says why a bundle could not be checked.
func unchecked(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "checking it took longer than " + bundleTime.String() + ": " + err.Error()
	}
	return err.Error()
}

// judgeRights asks for the right to change what governs, for each bundle that is concerned.
func (l *bundleRules) judgeRights(ctx context.Context, c change[corev1.ConfigMap], was, is *head, g governance, found *findings) error {
	for _, one := range concerned(was, is, g) {
		allowed, err := l.mayActivate(ctx, c.user, one.bundle)
		if err != nil {
			return err
		}
		if !allowed {
			found.deny(mayNot(governingField(was, is), c.user, one.bundle, one.otherwise))
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
	case !equality.Semantic.DeepEqual(was.servers, is.servers):
		return annotationsPath.Key(policyv1alpha1.CanaryServersAnnotation)
	default:
		return annotationsPath.Key(policyv1alpha1.CanaryPercentAnnotation)
	}
}

// audit tells the API server's audit log who lets what govern.
func audit(found *findings, c change[corev1.ConfigMap], is *head, seen *examined) {
	log := found.audited()
	log["activated-by"], log["bundle"], log["stage"], log["digest"] = c.user.Username, is.name, is.stage, seen.digest
	if is.servers != nil && is.stage == policyv1alpha1.LabelCanary {
		log["servers"] = *is.servers
	}
	if is.percent != nil && is.stage == policyv1alpha1.LabelCanary {
		log["percent"] = *is.percent
	}
}
