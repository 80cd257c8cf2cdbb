// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/canary"
	"github.com/metalaw/metalaw/webhooks/review"
)

var labelsPath = field.NewPath("metadata", "labels")

// head is a ConfigMap as the head of a bundle: what it says of itself.
type head struct {
	object *corev1.ConfigMap
	// name is the bundle's, as the label says.
	name  string
	stage string
}

// headOf is nil where there is no object, or it is no head.
func headOf(cm *corev1.ConfigMap) *head {
	if cm == nil {
		return nil
	}
	name, is := cm.Labels[policyv1alpha1.BundleLabel]
	if !is {
		return nil
	}
	return &head{object: cm, name: name, stage: cmp.Or(cm.Labels[policyv1alpha1.StageLabel], policyv1alpha1.LabelDraft)}
}

// governs says that the stage lets the bundle govern servers.
func (h *head) governs() bool {
	return h != nil && (h.stage == policyv1alpha1.LabelCanary || h.stage == policyv1alpha1.LabelActive)
}

// kept says that the stage is one in which the content has been accepted and stays as it is. An unknown word is none.
func (h *head) kept() bool {
	return h.governs() || (h != nil && h.stage == policyv1alpha1.LabelShadow)
}

// sameAnnotation says that an annotation has one value in both, or is in neither. Two say whom a canary governs.
func (h *head) sameAnnotation(other *head, name string) bool {
	value, set := h.object.Annotations[name]
	another, has := other.object.Annotations[name]
	return set == has && value == another
}

func (h *head) sameContent(other *head) bool { return len(h.differs(other)) == 0 }

// differs names the keys whose data is not the same.
func (h *head) differs(other *head) []string {
	a, b := everything(h.object), everything(other.object)
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool {
		data, had := a[key]
		now, has := b[key]
		return had == has && data == now
	})
}

// everything is data and binaryData; no key can be in both.
func everything(cm *corev1.ConfigMap) map[string]string {
	all := map[string]string{}
	maps.Copy(all, cm.Data)
	for key, data := range cm.BinaryData {
		all[key] = "binary:" + string(data)
	}
	return all
}

// checkStage refuses a word that is no stage, and a canary that does not say whom it governs.
func checkStage(h *head, found *review.Findings) {
	if stages := policyv1alpha1.Stages(); !slices.Contains(stages, h.stage) {
		found.Deny(field.NotSupported(labelsPath.Key(policyv1alpha1.StageLabel), h.stage, stages))
	}
	if h.stage != policyv1alpha1.LabelCanary {
		return
	}
	_, faults := canary.Parse(h.object.Annotations)
	for _, f := range faults {
		path := review.AnnotationsPath.Key(f.Annotation())
		if f.Kind == canary.NoScope {
			found.Deny(field.Required(path, f.String()))
		} else {
			found.Deny(field.Invalid(path, f.Value, f.String()))
		}
	}
}

// checkBinary speaks of files that are no text.
func checkBinary(h *head, found *review.Findings) {
	for _, key := range slices.Sorted(maps.Keys(h.object.BinaryData)) {
		err := field.Forbidden(field.NewPath("binaryData").Key(key), "the files of a bundle are text in UTF-8; store it under data")
		if h.kept() {
			found.Deny(err)
		} else {
			found.Warn("%s: %s", err.Field, err.Detail)
		}
	}
}

// checkKept refuses a change of what has been accepted.
func checkKept(was, is *head, found *review.Findings) {
	if !was.kept() {
		return
	}
	if keys := was.differs(is); len(keys) > 0 {
		found.Deny(field.Forbidden(field.NewPath("data"), fmt.Sprintf(
			"%s would change, and the files of a bundle of stage %s stay as they are. A change is a new version: raise version in %s "+
				"and store it in a ConfigMap of another name", strings.Join(keys, ", "), was.stage, bundle.BundleFile)))
	}
}
