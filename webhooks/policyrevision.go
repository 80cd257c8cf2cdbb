// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

const managersAlone = "the manager writes it, and nobody else: store a bundle in a ConfigMap, and label that with the stage"

// revisionFacts is what was looked up for a change of a PolicyRevision by somebody.
type revisionFacts struct {
	// mayActivate says that the user may change by what the bundle governs.
	mayActivate bool
	// use says what the revision is used for; empty where it is for nothing.
	use string
	// pinned is how many servers are governed by it, and server names one.
	pinned int
	server string
	// displaces is the revision in force that gives way to one that is restored, because that was promoted later; empty where
	// none does.
	displaces string
}

// judgeRevision answers for what people do to a PolicyRevision.
func (l *lookup) judgeRevision(ctx context.Context, c change[policyv1alpha1.PolicyRevision]) (findings, map[string]any, error) {
	var f revisionFacts
	if c.byManager {
		return findings{}, nil, nil
	}
	if c.created() || c.deleted() {
		var err error
		if f, err = l.revisionFacts(ctx, c); err != nil {
			return findings{}, nil, err
		}
	}
	found := checkRevision(c, f)
	if c.created() && found.pass() {
		if err := l.judgeRestored(ctx, c.new, &found); err != nil {
			return findings{}, nil, err
		}
	}
	return found, nil, nil
}

// judgeRestored holds what comes back from a backup to what every bundle has to pass: an object of this kind can be written by
// hand as well.
func (l *lookup) judgeRestored(ctx context.Context, r *policyv1alpha1.PolicyRevision, found *findings) error {
	files, err := bundle.Unpack(r.Spec.Content)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bundleTime)
	defer cancel()
	v, err := l.accepted.of(ctx, files)
	if err != nil {
		return fmt.Errorf("the revision %s", unchecked(err))
	}
	switch {
	case v.revision.Name == "":
		found.denyDiagnostics("this version of metalaw does not accept what the revision holds; restore it with the version that made it ("+
			r.Spec.EngineVersion+"), or store a bundle in a ConfigMap instead", v.found)
	case v.revision.Name != r.Name:
		found.deny(field.Invalid(field.NewPath("metadata", "name"), r.Name, "its content is that of "+v.revision.Name+
			"; take the object from the backup unchanged"))
	}
	return nil
}

func (l *lookup) revisionFacts(ctx context.Context, c change[policyv1alpha1.PolicyRevision]) (revisionFacts, error) {
	r := c.new
	if c.deleted() {
		r = c.old
	}
	var f revisionFacts
	var err error
	if f.mayActivate, err = l.mayActivate(ctx, c.user, r.Spec.Bundle); err != nil {
		return f, err
	}
	var all policyv1alpha1.PolicyRevisionList
	if err := l.cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return f, fmt.Errorf("the policy revisions cannot be read: %w", err)
	}
	if c.created() {
		if in := policyv1alpha1.InForce(all.Items); in != nil && r.Promotion() > in.Promotion() {
			f.displaces = in.Name
		}
		return f, nil
	}
	f.use = use(r, lastPromoted(all.Items))
	var servers v1alpha1.ServerList
	if err := l.cache.List(ctx, &servers, client.UnsafeDisableDeepCopy); err != nil {
		return f, fmt.Errorf("the servers cannot be read: %w", err)
	}
	for i := range servers.Items {
		if at := servers.Items[i].Status.Lifecycle; at != nil && at.Revision == r.Name {
			f.pinned++
			f.server = servers.Items[i].Name
		}
	}
	return f, nil
}

// checkRevision leaves to people the deletion of what nobody needs any more, the restore of a backup, and whatever metadata
// metalaw does not read.
func checkRevision(c change[policyv1alpha1.PolicyRevision], f revisionFacts) findings {
	var found findings
	switch {
	case c.status:
		found.deny(field.Forbidden(field.NewPath("status"), managersAlone))
	case c.deleted():
		checkRevisionDeletion(c, f, &found)
	case c.created():
		checkRestore(c, f, &found)
	default:
		if !equality.Semantic.DeepEqual(c.old.Spec, c.new.Spec) {
			found.deny(field.Forbidden(field.NewPath("spec"), managersAlone))
		}
		if !maps.Equal(ours(c.old.Annotations), ours(c.new.Annotations)) {
			found.deny(field.Forbidden(annotationsPath, managersAlone))
		}
		if !maps.Equal(ours(c.old.Labels), ours(c.new.Labels)) {
			found.deny(field.Forbidden(labelsPath, managersAlone))
		}
	}
	return found
}

// ours are the labels or annotations that metalaw reads.
func ours(all map[string]string) map[string]string {
	mine := map[string]string{}
	for key, value := range all {
		if strings.HasPrefix(key, policyv1alpha1.GroupVersion.Group+"/") {
			mine[key] = value
		}
	}
	return mine
}

// asks are the stages that a ConfigMap asks for, as its label spells them, in which the bundle is to be used.
var asks = map[policyv1alpha1.LabelledStage]string{policyv1alpha1.LabelledShadow: policyv1alpha1.LabelShadow,
	policyv1alpha1.LabelledCanary: policyv1alpha1.LabelCanary, policyv1alpha1.LabelledActive: policyv1alpha1.LabelActive}

func checkRevisionDeletion(c change[policyv1alpha1.PolicyRevision], f revisionFacts, found *findings) {
	if damaged(c.old) {
		found.warn("the content of the revision is damaged: restore it from a good backup at once, under the same name and with its annotations; " +
			"until then servers pinned to it come under what is in force")
		if !f.mayActivate {
			found.deny(mayNot(nil, c.user, c.old.Spec.Bundle, ""))
		}
		return
	}
	if f.use != "" {
		found.deny(field.Forbidden(nil, fmt.Sprintf(
			"the revision is %s; promote another, or take the stage off its ConfigMap, and delete it then", f.use)))
	}
	if st := c.old.Status; f.use == "" && asks[st.LabelledStage] != "" {
		found.deny(field.Forbidden(nil, fmt.Sprintf(
			"ConfigMap %s, which holds the bundle, bears stage %s still, and would have the revision made and used anew; "+
				"label it %s=%s or delete it, and delete the revision then",
			st.Head, asks[st.LabelledStage], policyv1alpha1.StageLabel, policyv1alpha1.LabelDraft)))
	}
	if f.pinned > 0 {
		what := fmt.Sprintf("server %s is governed by it and adopts", f.server)
		if f.pinned > 1 {
			what = fmt.Sprintf("%d servers (%s is one) are governed by it and adopt", f.pinned, f.server)
		}
		found.deny(field.Forbidden(nil, what+" another revision in the next stable state; delete it then"))
	}
	if !f.mayActivate {
		found.deny(mayNot(nil, c.user, c.old.Spec.Bundle, ""))
	}
}

// damaged says that the content of a revision is not what its digest says, so that it serves nobody.
func damaged(r *policyv1alpha1.PolicyRevision) bool {
	files, err := bundle.Unpack(r.Spec.Content)
	return err != nil || files.Digest() != r.Spec.Digest
}

// checkRestore takes a revision back from a backup: its name and its digest have to be those of its content.
func checkRestore(c change[policyv1alpha1.PolicyRevision], f revisionFacts, found *findings) {
	if !f.mayActivate {
		found.deny(field.Forbidden(nil, managersAlone),
			mayNot(nil, c.user, c.new.Spec.Bundle, ", and which restoring a backup takes as well"))
		return
	}
	spec := c.new.Spec
	path := field.NewPath("spec")
	files, err := bundle.Unpack(spec.Content)
	if err != nil {
		found.deny(field.Invalid(path.Child("content"), "", err.Error()+"; take the object from the backup unchanged"))
		return
	}
	if digest := files.Digest(); digest != spec.Digest {
		found.deny(field.Invalid(path.Child("digest"), spec.Digest, "the content has digest "+digest+"; take the object from the backup unchanged"))
	}
	if name := bundle.RevisionName(spec.Bundle, spec.Version, spec.Digest); name != c.new.Name {
		found.deny(field.Invalid(field.NewPath("metadata", "name"), c.new.Name, "a revision of this bundle, version and digest is named "+name))
	}
	text, set := c.new.Annotations[policyv1alpha1.PromotionAnnotation]
	if n := c.new.Promotion(); set && (n == 0 || n > policyv1alpha1.MaxRestoredPromotion) {
		found.deny(field.Invalid(annotationsPath.Key(policyv1alpha1.PromotionAnnotation), text, fmt.Sprintf(
			"a promotion has a number from 1 to %d; take the object from the backup unchanged", int64(policyv1alpha1.MaxRestoredPromotion))))
	}
	if !found.pass() {
		return
	}
	found.warn("a revision is restored, as from a backup; a new bundle is stored in a ConfigMap instead")
	if f.displaces != "" {
		found.warn("its promotion %d is the latest, so that it is in force at once, on every manager and without waiting for any, "+
			"in the place of %s; to go back, promote that one's ConfigMap again", c.new.Promotion(), f.displaces)
	}
}
