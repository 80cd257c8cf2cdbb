// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// labelled are the stages by what the label says.
var labelled = map[string]policyv1alpha1.LabelledStage{
	"": policyv1alpha1.LabelledDraft, policyv1alpha1.LabelDraft: policyv1alpha1.LabelledDraft,
	policyv1alpha1.LabelShadow: policyv1alpha1.LabelledShadow, policyv1alpha1.LabelCanary: policyv1alpha1.LabelledCanary,
	policyv1alpha1.LabelActive: policyv1alpha1.LabelledActive,
}

// bundleConfigMap is a ConfigMap that holds a bundle, as it was read.
type bundleConfigMap struct {
	rollout.Head
	configMap *corev1.ConfigMap
	// reason is the reason of the event about Problem.
	reason string
}

func (h *bundleConfigMap) refuse(reason, format string, args ...any) {
	h.reason, h.Problem = reason, fmt.Sprintf(format, args...)
}

// acceptTime is how long a look waits for the acceptance of one bundle. Admission gives it 13 seconds, and stores nothing but drafts that
// take longer; while the leader waits, nothing else is decided.
const acceptTime = 30 * time.Second

// acceptPause is how long one that took longer is left alone.
const acceptPause = 10 * time.Minute

// accepted is what came of the acceptance of some content, so that it is made once.
type accepted struct {
	bundle *bundle.Bundle
	found  diag.List
	// again is when to accept it again, because it was given up; zero for a verdict.
	again time.Time
}

// readBundles reads every bundle, and stores the revisions that there are not yet. The revisions are those stored; new ones
// are added.
func (c *reconciler) readBundles(ctx context.Context, revisions []policyv1alpha1.PolicyRevision) (
	[]bundleConfigMap, []policyv1alpha1.PolicyRevision, error,
) {
	var list corev1.ConfigMapList
	if err := c.bundles.List(ctx, &list, client.InNamespace(c.Namespace), client.HasLabels{policyv1alpha1.BundleLabel}); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	var bundles []bundleConfigMap
	var errs []error
	judged := map[string]accepted{}
	for i := range list.Items {
		cm := &list.Items[i]
		if !cm.DeletionTimestamp.IsZero() {
			continue
		}
		h := bundleConfigMap{configMap: cm}
		h.Name, h.ActivatedBy = cm.Name, cm.Annotations[policyv1alpha1.ActivatedByAnnotation]
		made, err := c.judge(ctx, &h, revisions, judged)
		if err != nil {
			errs = append(errs, fmt.Errorf("ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err))
			continue // what the others hold is judged nevertheless, and remembered
		}
		if made != nil {
			revisions = append(revisions, *made)
		}
		bundles = append(bundles, h)
	}
	c.judged = judged
	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	return bundles, revisions, nil
}

// judge finds the revision that a bundle holds, and stores it where it is new and more than a draft. A draft is not accepted: admission
// and metalaw policy verify show its author what is wrong with it, nobody else asks, and whoever may write drafts must not be able
// to keep the leader from its work. The error says nothing of the bundle: the API server cannot be asked at the moment.
func (c *reconciler) judge(ctx context.Context, h *bundleConfigMap, revisions []policyv1alpha1.PolicyRevision, judged map[string]accepted) (
	made *policyv1alpha1.PolicyRevision, err error,
) {
	files, ok := c.assemble(ctx, h)
	if !ok {
		return nil, nil
	}
	name, own := h.configMap.Labels[policyv1alpha1.BundleLabel], files.Digest()
	h.Digest = own
	known := slices.IndexFunc(revisions, func(r policyv1alpha1.PolicyRevision) bool { return r.Holds(name, own) })
	if known >= 0 { // what was filled in when it was accepted stays what it was
		h.found(revisions[known].Name)
		return nil, nil
	}
	if h.Stage == policyv1alpha1.LabelledDraft {
		return nil, nil
	}
	a, err := c.verdict(ctx, files, own)
	if err != nil {
		return nil, err
	}
	judged[own] = a
	switch {
	case !a.again.IsZero():
		h.refuse(policyv1alpha1.ReasonBundleRefused, "checking it takes longer than %v and was given up, which is tried again after %v. "+
			"See what metalaw policy verify says, and let its rules and tests look at less", acceptTime, acceptPause)
	case a.bundle == nil || a.found.HasErrors():
		h.refuse(policyv1alpha1.ReasonBundleRefused, "%s", summary(a.found))
	default:
		h.compare(a.bundle, revisions)
	}
	if h.Problem != "" {
		return nil, nil
	}
	is := a.bundle.Revision
	if slices.ContainsFunc(revisions, func(r policyv1alpha1.PolicyRevision) bool { return r.Name == is.Name && r.Spec.Digest == is.Digest }) {
		h.found(is.Name) // other files, filled up to the same content
		return nil, nil
	}
	made, err = c.create(ctx, h, a.bundle, a.found, own)
	if err != nil && !transient(err) {
		h.refuse(policyv1alpha1.ReasonBundleNotStored, "PolicyRevision %s cannot be stored, which is tried again: %s", is.Name, err)
		return nil, nil
	}
	if h.Problem == "" && made != nil {
		h.found(made.Name)
	}
	return made, err
}

// verdict is what came of accepting the content of a bundle, or comes of it, for as long as a look may wait. The error says nothing of the
// content.
func (c *reconciler) verdict(ctx context.Context, files bundle.Files, digest string) (accepted, error) {
	if a, ok := c.judged[digest]; ok && (a.again.IsZero() || c.Now().Before(a.again)) {
		return a, nil
	}
	limited, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	b, found, err := c.Store.Accept(limited, files, c.Store.embedded.Files)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return accepted{again: c.Now().Add(acceptPause)}, nil
	}
	return accepted{bundle: b, found: found}, err
}

// compare holds the name and the version of a new bundle against the label and against what there is.
func (h *bundleConfigMap) compare(b *bundle.Bundle, revisions []policyv1alpha1.PolicyRevision) {
	if name := h.configMap.Labels[policyv1alpha1.BundleLabel]; b.Name != name {
		h.refuse(policyv1alpha1.ReasonBundleRefused, "label %s says %q and bundle.yaml says %q; give them the same name",
			policyv1alpha1.BundleLabel, name, b.Name)
		return
	}
	for i := range revisions {
		if r := &revisions[i]; r.Spec.Bundle == b.Name && r.Spec.Version == b.Version && r.Spec.Digest != b.Revision.Digest {
			h.refuse(policyv1alpha1.ReasonVersionTaken, "revision %s has version %s and other content; raise version: in bundle.yaml",
				r.Name, b.Version)
			return
		}
	}
}

// assemble reads the files of a bundle, and its stage. False: the bundle cannot be used, and says why.
func (c *reconciler) assemble(ctx context.Context, h *bundleConfigMap) (bundle.Files, bool) {
	cm := h.configMap
	text := cm.Labels[policyv1alpha1.StageLabel]
	stage, ok := labelled[text]
	if !ok {
		h.Stage = policyv1alpha1.LabelledNone
		h.refuse(policyv1alpha1.ReasonBundleRefused, "label %s is %q; write draft, shadow, canary or active", policyv1alpha1.StageLabel, text)
		return nil, false
	}
	h.Stage = stage
	if len(cm.BinaryData) > 0 {
		h.refuse(policyv1alpha1.ReasonBundleRefused, "it has binaryData, which nothing reads: a file of a bundle is UTF-8 text; "+
			"see whether a file has another encoding")
		return nil, false
	}
	files, found := bundle.Assemble(cm.Name, cm.Data, func(configMap, file string) (string, bool) {
		part := &corev1.ConfigMap{}
		if c.parts.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: configMap}, part) != nil ||
			part.Labels[policyv1alpha1.BundlePartLabel] != cm.Labels[policyv1alpha1.BundleLabel] {
			return "", false
		}
		text, ok := part.Data[file]
		return text, ok
	})
	if len(found) == 0 {
		return files, true
	}
	reason := policyv1alpha1.ReasonBundleRefused
	if bundle.Incomplete(found) {
		reason = policyv1alpha1.ReasonBundleIncomplete
	}
	h.refuse(reason, "%s", summary(found))
	return nil, false
}

// found notes the revision that a bundle holds, and reads whom it governs as a canary.
func (h *bundleConfigMap) found(revision string) {
	h.Revision = revision
	if h.Stage != policyv1alpha1.LabelledCanary {
		return
	}
	var err error
	if h.Canary, err = rollout.ParseScope(h.configMap.Annotations); err != nil {
		h.refuse(policyv1alpha1.ReasonBundleRefused, "%s", err)
	}
}

// create stores what a bundle holds as a revision. One that is stored already, which the cache does not show yet, is taken as it is.
func (c *reconciler) create(ctx context.Context, h *bundleConfigMap, b *bundle.Bundle, found diag.List, own string) (
	*policyv1alpha1.PolicyRevision, error,
) {
	r, err := revisionOf(b)
	if err != nil {
		return nil, err
	}
	r.Spec.Source = &policyv1alpha1.PolicySource{Namespace: h.configMap.Namespace, Name: h.configMap.Name, UID: h.configMap.UID, Digest: own}
	if err := c.Client.Create(ctx, r); apierrors.IsAlreadyExists(err) {
		return c.existing(ctx, h, b)
	} else if err != nil {
		return nil, err
	}
	c.written.Wrote(r)
	c.Store.put(b, found)
	c.log(ctx).Info("accepted", "revision", r.Name, "configMap", h.Name)
	c.event(h.configMap, r, corev1.EventTypeNormal, policyv1alpha1.ReasonBundleAccepted, "Accept", "accepted as PolicyRevision "+r.Name)
	return r, nil
}

// existing is the stored revision with the name of a bundle. It may be another one only where somebody chose the content for that.
func (c *reconciler) existing(ctx context.Context, h *bundleConfigMap, b *bundle.Bundle) (*policyv1alpha1.PolicyRevision, error) {
	r := &policyv1alpha1.PolicyRevision{}
	if err := c.Live.Get(ctx, types.NamespacedName{Name: b.Revision.Name}, r); err != nil {
		return nil, err
	}
	if r.Spec.Digest != b.Revision.Digest {
		h.refuse(policyv1alpha1.ReasonVersionTaken, "revision %s has this name and other content; raise version: in bundle.yaml", r.Name)
		return nil, nil
	}
	return r, nil
}

// transient says that a request failed for a reason that has nothing to do with what was asked for, so that others fail as well: the
// API server cannot be reached, is overloaded, or has another version of the object by now.
func transient(err error) bool {
	if _, answered := errors.AsType[*apierrors.StatusError](err); !answered {
		return true
	}
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsUnauthorized(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

// revisionOf is the object that holds a bundle.
func revisionOf(b *bundle.Bundle) (*policyv1alpha1.PolicyRevision, error) {
	content, err := b.Files.Pack()
	if err != nil {
		return nil, err
	}
	return &policyv1alpha1.PolicyRevision{
		ObjectMeta: metav1.ObjectMeta{Name: b.Revision.Name, Labels: map[string]string{policyv1alpha1.BundleLabel: b.Name}},
		Spec: policyv1alpha1.PolicyRevisionSpec{Bundle: b.Name, Version: b.Version, Digest: b.Revision.Digest,
			EngineVersion: bundle.EngineVersion, Content: content}}, nil
}

// shownFindings is how many findings an event names.
const shownFindings = 3

// summary names the first errors, and says how many more there are.
func summary(found diag.List) string {
	var lines []string
	more := 0
	for _, d := range found {
		switch {
		case d.Severity != diag.Error:
		case len(lines) < shownFindings:
			lines = append(lines, d.String())
		default:
			more++
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more; metalaw policy verify shows all", more))
	}
	return strings.Join(lines, "\n")
}
