// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// examined is what there is to say about the content of a head.
type examined struct {
	// name is the bundle's by its own word, and digest that of the whole content. They are empty where it is not accepted.
	name, version, digest string
	found                 diag.List
	// bundle is what the content compiles to; nil where that is not known. promoted says that it was in force before.
	bundle   *bundle.Bundle
	promoted bool
	// taken is the revision that has this name and version, and another content.
	taken string
}

func (c *examined) accepted() bool { return c.digest != "" }

// examine puts the content together and has it accepted. Content that a revision holds already is not compiled again
// while that revision is proven: it may be promoted and rolled back at no cost. It keeps what was filled in when it was
// accepted, whatever the present default is. No label is believed: the revision is found by the content alone.
func (l *bundleRules) examine(ctx context.Context, h *head) (*examined, error) {
	files, found, err := l.assemble(ctx, h)
	if err != nil || found.HasErrors() {
		return &examined{found: found}, err
	}
	revisions, err := l.revisions(ctx, h.name)
	if err != nil {
		return nil, err
	}
	stored := holding(revisions, h.name, files.Digest())
	if stored != nil {
		if proven(stored) {
			c := &examined{name: stored.Spec.Bundle, version: stored.Spec.Version, digest: stored.Spec.Digest, promoted: stored.Promotion() > 0}
			c.bundle, err = l.pinned(ctx, stored.Name)
			return c, err
		}
		if files, err = bundle.Unpack(stored.Spec.Content); err != nil {
			return nil, fmt.Errorf("PolicyRevision %q: %w", stored.Name, err)
		}
	}
	v, err := l.accepted.of(ctx, files)
	if err != nil {
		return nil, fmt.Errorf("bundle %q could not be checked: %w", h.name, err)
	}
	c := &examined{name: v.name, version: v.revision.Version, digest: v.revision.Digest, found: v.found, bundle: v.bundle,
		promoted: stored != nil && stored.Promotion() > 0}
	if stored == nil && c.accepted() {
		c.taken, err = l.taken(ctx, revisions, c)
	}
	return c, err
}

// assemble reads the parts that a head lists, past the cache.
func (l *bundleRules) assemble(ctx context.Context, h *head) (bundle.Files, diag.List, error) {
	var failed error
	read := map[string]*corev1.ConfigMap{}
	files, found := bundle.Assemble(h.object.Name, h.object.Data, func(name, file string) (string, bool) {
		part, again := read[name]
		if !again {
			part = &corev1.ConfigMap{}
			err := l.reader.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, part)
			if client.IgnoreNotFound(err) != nil {
				failed = fmt.Errorf("ConfigMap %q cannot be read: %w", name, err)
			}
			if err != nil || part.Labels[policyv1alpha1.BundlePartLabel] != h.name {
				part = &corev1.ConfigMap{}
			}
			read[name] = part
		}
		text, there := part.Data[file]
		return text, there
	})
	return files, found, failed
}

// revisions are those of a bundle that the cache knows.
func (l *bundleRules) revisions(ctx context.Context, name string) ([]policyv1alpha1.PolicyRevision, error) {
	var all policyv1alpha1.PolicyRevisionList
	if err := l.cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("the policy revisions cannot be read: %w", err)
	}
	var of []policyv1alpha1.PolicyRevision
	for i := range all.Items {
		if all.Items[i].Spec.Bundle == name {
			of = append(of, all.Items[i])
		}
	}
	return of, nil
}

// holding finds the revision with a content: that of the digest, or what the files of this digest became when the rest was
// filled in.
func holding(revisions []policyv1alpha1.PolicyRevision, name, digest string) *policyv1alpha1.PolicyRevision {
	for i := range revisions {
		if revisions[i].Holds(name, digest) {
			return &revisions[i]
		}
	}
	return nil
}

// proven says that this engine has compiled and tested the revision.
func proven(r *policyv1alpha1.PolicyRevision) bool {
	here := r.Spec.EngineVersion == bundle.EngineVersion || slices.ContainsFunc(r.Status.Loaded, func(l policyv1alpha1.LoadedRevision) bool {
		return l.Compiled && l.EngineVersion == bundle.EngineVersion
	})
	return here &&
		meta.IsStatusConditionTrue(r.Status.Conditions, policyv1alpha1.ConditionCompiled) &&
		meta.IsStatusConditionTrue(r.Status.Conditions, policyv1alpha1.ConditionVerified)
}

// taken names the revision with the name and version of a content and another digest. That there is one is confirmed past
// the cache.
func (l *bundleRules) taken(ctx context.Context, revisions []policyv1alpha1.PolicyRevision, c *examined) (string, error) {
	for i := range revisions {
		spec := revisions[i].Spec
		if spec.Bundle != c.name || spec.Version != c.version || spec.Digest == c.digest {
			continue
		}
		err := l.reader.Get(ctx, client.ObjectKeyFromObject(&revisions[i]), &policyv1alpha1.PolicyRevision{})
		if err == nil {
			return revisions[i].Name, nil
		}
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("PolicyRevision %q cannot be read: %w", revisions[i].Name, err)
		}
	}
	return "", nil
}

// checkContent refuses what may not govern, and tells of it where it is a draft.
func checkContent(h *head, c *examined, found *findings) {
	if !c.accepted() {
		checkUnaccepted(h, c, found)
		return
	}
	var wrong []*field.Error
	if c.name != h.name {
		wrong = append(wrong, field.Invalid(labelsPath.Key(policyv1alpha1.BundleLabel), h.name, fmt.Sprintf(
			"%s names the bundle %q; write the same name in both", bundle.BundleFile, c.name)))
	}
	if c.taken != "" {
		wrong = append(wrong, field.Invalid(field.NewPath("data").Key(bundle.BundleFile), c.version, fmt.Sprintf(
			"version %s of bundle %s exists with another content (PolicyRevision %s); raise version", c.version, c.name, c.taken)))
	}
	for _, err := range wrong {
		if h.kept() {
			found.deny(err)
		} else {
			found.warn("%s: %s", err.Field, err.ErrorBody())
		}
	}
	found.warnDiagnostics(c.found)
}

func checkUnaccepted(h *head, c *examined, found *findings) {
	switch incomplete := bundle.Incomplete(c.found); {
	case h.kept() && incomplete:
		found.denyDiagnostics(fmt.Sprintf("bundle %s is not whole, as stage %s wants it; store its parts first, or this one as a draft",
			h.name, h.stage), c.found)
	case h.kept():
		found.denyDiagnostics(fmt.Sprintf("bundle %s is not accepted for stage %s", h.name, h.stage), c.found)
	case incomplete:
		found.warn("bundle %s is stored as a draft that is not whole; nothing is checked until it is: %s", h.name, counted(c.found))
		found.warnDiagnostics(c.found)
	default:
		found.warn("bundle %s is stored as a draft, and would not be accepted: %s", h.name, counted(c.found))
		found.warnDiagnostics(c.found)
	}
}
