// SPDX-License-Identifier: Apache-2.0

package bundles

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
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/webhooks/review"
)

// Examined is what there is to say about the content of a head.
type Examined struct {
	// Name is the bundle's by its own word, and digest that of the whole content. They are empty where it is not accepted.
	Name, Version, digest string
	found                 diag.List
	// Bundle is what the content compiles to; nil where that is not known. promoted says that it was in force before.
	Bundle   *bundle.Bundle
	promoted bool
	// taken is the revision that has this name and version, and another content.
	taken string
}

func (c *Examined) accepted() bool { return c.digest != "" }

// examine puts the content together and has it accepted. Content that a revision holds already is not compiled again
// while that revision is proven: it may be promoted and rolled back at no cost. It keeps what was filled in when it was
// accepted, also if the default has changed. No label is believed: the revision is found by the content alone.
func (l *Rules) examine(ctx context.Context, h *head) (*Examined, error) {
	files, found, err := l.assemble(ctx, h)
	if err != nil || found.HasErrors() {
		return &Examined{found: found}, err
	}
	revisions, err := l.revisions(ctx)
	if err != nil {
		return nil, err
	}
	stored := holding(revisions, h.name, files.Digest())
	if stored != nil {
		if proven(stored) {
			c := &Examined{Name: stored.Spec.Bundle, Version: stored.Spec.Version, digest: stored.Spec.Digest, promoted: stored.Promotion() > 0}
			c.Bundle, err = l.pinned(ctx, stored.Name)
			return c, err
		}
		if files, err = bundle.Unpack(stored.Spec.Content); err != nil {
			return nil, fmt.Errorf("PolicyRevision %q: %w", stored.Name, err)
		}
	}
	v, err := l.Accepted.of(ctx, files)
	if err != nil {
		return nil, fmt.Errorf("bundle %q could not be checked: %w", h.name, err)
	}
	c := &Examined{found: v.found, Bundle: v.bundle, promoted: stored != nil && stored.Promotion() > 0}
	if v.bundle == nil {
		return c, nil
	}
	c.Name, c.Version, c.digest = v.bundle.Name, v.bundle.Version, v.bundle.Revision.Digest
	if stored == nil {
		c.taken, err = l.taken(ctx, revisions, c)
	}
	return c, err
}

// assemble reads the parts that a head lists, past the cache.
func (l *Rules) assemble(ctx context.Context, h *head) (bundle.Files, diag.List, error) {
	var failed error
	read := map[string]*corev1.ConfigMap{}
	files, found := bundle.Assemble(h.object.Name, h.object.Data, func(name, file string) (string, bool) {
		part, again := read[name]
		if !again {
			part = &corev1.ConfigMap{}
			err := l.Reader.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: name}, part)
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

// revisions are those that the cache knows.
func (l *Rules) revisions(ctx context.Context) ([]policyv1alpha1.PolicyRevision, error) {
	var all policyv1alpha1.PolicyRevisionList
	if err := l.Cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("the policy revisions cannot be read: %w", err)
	}
	return all.Items, nil
}

// servers are those that the cache knows.
func (l *Rules) servers(ctx context.Context) ([]v1alpha1.Server, error) {
	var all v1alpha1.ServerList
	if err := l.Cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("the servers cannot be read: %w", err)
	}
	return all.Items, nil
}

// holding finds the revision with a content: that of the digest, or what the files of this digest became when the rest was
// filled in.
func holding(revisions []policyv1alpha1.PolicyRevision, name, digest string) *policyv1alpha1.PolicyRevision {
	i := slices.IndexFunc(revisions, func(r policyv1alpha1.PolicyRevision) bool { return r.Holds(name, digest) })
	if i < 0 {
		return nil
	}
	return &revisions[i]
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
func (l *Rules) taken(ctx context.Context, revisions []policyv1alpha1.PolicyRevision, c *Examined) (string, error) {
	for i := range revisions {
		spec := revisions[i].Spec
		if spec.Bundle != c.Name || spec.Version != c.Version || spec.Digest == c.digest {
			continue
		}
		err := l.Reader.Get(ctx, client.ObjectKeyFromObject(&revisions[i]), &policyv1alpha1.PolicyRevision{})
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
func checkContent(h *head, c *Examined, found *review.Findings) {
	if !c.accepted() {
		checkUnaccepted(h, c, found)
		return
	}
	var wrong []*field.Error
	if c.Name != h.name {
		wrong = append(wrong, field.Invalid(labelsPath.Key(policyv1alpha1.BundleLabel), h.name, fmt.Sprintf(
			"%s names the bundle %q; write the same name in both", bundle.BundleFile, c.Name)))
	}
	if c.taken != "" {
		wrong = append(wrong, field.Invalid(field.NewPath("data").Key(bundle.BundleFile), c.Version, fmt.Sprintf(
			"version %s of bundle %s exists with another content (PolicyRevision %s); raise version", c.Version, c.Name, c.taken)))
	}
	for _, err := range wrong {
		if h.kept() {
			found.Deny(err)
		} else {
			found.Warn("%s: %s", err.Field, err.ErrorBody())
		}
	}
	found.WarnDiagnostics(c.found)
}

func checkUnaccepted(h *head, c *Examined, found *review.Findings) {
	switch incomplete := bundle.Incomplete(c.found); {
	case h.kept() && incomplete:
		found.DenyDiagnostics(fmt.Sprintf("bundle %s is not whole, as stage %s wants it; store its parts first, or this one as a draft",
			h.name, h.stage), c.found)
	case h.kept():
		found.DenyDiagnostics(fmt.Sprintf("bundle %s is not accepted for stage %s", h.name, h.stage), c.found)
	case incomplete:
		found.Warn("bundle %s is stored as a draft that is not whole; nothing is checked until it is: %s", h.name, review.Counted(c.found))
		found.WarnDiagnostics(c.found)
	default:
		found.Warn("bundle %s is stored as a draft, and would not be accepted: %s", h.name, review.Counted(c.found))
		found.WarnDiagnostics(c.found)
	}
}
