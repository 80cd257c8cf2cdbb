// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/webhooks/review"
)

const managersAlone = "only the manager writes it: store a bundle in a ConfigMap, and label that with the stage"

// revisionFacts is what was looked up for a change of a PolicyRevision by a user.
type revisionFacts struct {
	// mayActivate says that the user may change by what the bundle governs.
	mayActivate bool
	// use says what the revision is used for; empty where it is for nothing.
	use string
	// pinned is how many servers are governed by it, and server names one.
	pinned int
	server string
	// restored is what there is where one is restored.
	restored restoredInto
}

// JudgeRevision answers for what people do to a PolicyRevision.
func (l *Rules) JudgeRevision(
	ctx context.Context, c review.Change[policyv1alpha1.PolicyRevision], found *review.Findings, _ map[string]any,
) (err error) {
	var f revisionFacts
	if c.ByManager {
		return nil
	}
	if c.Created() || c.Deleted() {
		if f, err = l.revisionFacts(ctx, c); err != nil {
			return err
		}
	}
	checkRevision(c, f, found)
	if c.Created() && found.Pass() {
		return l.judgeRestored(ctx, c, f.restored, found)
	}
	return nil
}

func (l *Rules) revisionFacts(ctx context.Context, c review.Change[policyv1alpha1.PolicyRevision]) (f revisionFacts, err error) {
	r := c.New
	if c.Deleted() {
		r = c.Old
	}
	if f.mayActivate, err = l.mayActivate(ctx, c.User, r.Spec.Bundle); err != nil {
		return f, err
	}
	all, err := l.revisions(ctx)
	if err != nil {
		return f, err
	}
	if c.Created() {
		f.restored = restoredAmong(all, r, l.Bundles.Active().Revision.Name)
		return f, nil
	}
	f.use = use(r, lastPromoted(all))
	servers, err := l.servers(ctx)
	for i := range servers {
		if at := servers[i].Status.Lifecycle; at != nil && at.Revision == r.Name {
			f.pinned++
			f.server = servers[i].Name
		}
	}
	return f, err
}

// checkRevision leaves to people the deletion of what serves nothing any more, the restore of a backup, and all
// metadata that metalaw does not read.
func checkRevision(c review.Change[policyv1alpha1.PolicyRevision], f revisionFacts, found *review.Findings) {
	switch {
	case c.Status:
		found.Deny(field.Forbidden(field.NewPath("status"), managersAlone))
	case c.Deleted():
		checkRevisionDeletion(c, f, found)
	case c.Created():
		checkRestore(c, f, found)
	default:
		if !equality.Semantic.DeepEqual(c.Old.Spec, c.New.Spec) {
			found.Deny(field.Forbidden(field.NewPath("spec"), managersAlone))
		}
		if !maps.Equal(ours(c.Old.Annotations), ours(c.New.Annotations)) {
			found.Deny(field.Forbidden(review.AnnotationsPath, managersAlone))
		}
		if !maps.Equal(ours(c.Old.Labels), ours(c.New.Labels)) {
			found.Deny(field.Forbidden(labelsPath, managersAlone))
		}
	}
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

func checkRevisionDeletion(c review.Change[policyv1alpha1.PolicyRevision], f revisionFacts, found *review.Findings) {
	if damaged(c.Old) {
		found.Warn("the content of the revision is damaged: restore it from a good backup at once, under the same name and with its annotations. " +
			"Until then servers pinned to it come under what is in force")
		if !f.mayActivate {
			found.Deny(mayNot(nil, c.User, c.Old.Spec.Bundle, ""))
		}
		return
	}
	if f.use != "" {
		found.Deny(field.Forbidden(nil, fmt.Sprintf(
			"the revision is %s; promote another, or take the stage off its ConfigMap, and delete it then", f.use)))
	}
	if st := c.Old.Status; f.use == "" && asks[st.LabelledStage] != "" {
		found.Deny(field.Forbidden(nil, fmt.Sprintf(
			"ConfigMap %s, which holds the bundle, bears stage %s still, and would have the revision made and used anew. "+
				"Label it %s=%s or delete it, and delete the revision then",
			st.Head, asks[st.LabelledStage], policyv1alpha1.StageLabel, policyv1alpha1.LabelDraft)))
	}
	if f.pinned > 0 {
		what := fmt.Sprintf("server %s is governed by it and adopts", f.server)
		if f.pinned > 1 {
			what = fmt.Sprintf("%d servers (%s is one) are governed by it and adopt", f.pinned, f.server)
		}
		found.Deny(field.Forbidden(nil, what+" another revision in the next stable state; delete it then"))
	}
	if !f.mayActivate {
		found.Deny(mayNot(nil, c.User, c.Old.Spec.Bundle, ""))
	}
}

// damaged says that the content of a revision is not what its digest says, so that it serves no server.
func damaged(r *policyv1alpha1.PolicyRevision) bool {
	files, err := bundle.Unpack(r.Spec.Content)
	return err != nil || files.Digest() != r.Spec.Digest
}
