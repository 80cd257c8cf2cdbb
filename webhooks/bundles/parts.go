// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/webhooks/review"
)

// judgePart keeps the files that a head of stage shadow, canary or active lists as it lists them.
func (l *Rules) judgePart(ctx context.Context, c review.Change[corev1.ConfigMap], found *review.Findings) error {
	checkPart(c.New, found)
	name, was := partOf(c.Old)
	after, is := partOf(c.New)
	if !was || (is && after == name && maps.Equal(c.Old.Data, c.New.Data)) {
		return nil
	}
	// Read past the cache: there are few, and a head that was promoted a moment ago counts.
	var heads corev1.ConfigMapList
	err := l.Reader.List(ctx, &heads, client.InNamespace(l.Namespace), client.MatchingLabels{policyv1alpha1.BundleLabel: name})
	if err != nil {
		return fmt.Errorf("the ConfigMaps of bundle %q cannot be read: %w", name, err)
	}
	var left map[string]string
	if is && after == name {
		left = c.New.Data
	}
	for i := range heads.Items {
		checkListed(headOf(&heads.Items[i]), c.Old, left, found)
	}
	return nil
}

// partOf names the bundle that a ConfigMap holds files of.
func partOf(cm *corev1.ConfigMap) (string, bool) {
	if cm == nil {
		return "", false
	}
	name, is := cm.Labels[policyv1alpha1.BundlePartLabel]
	return name, is
}

// checkPart speaks of what means nothing in a part.
func checkPart(cm *corev1.ConfigMap, found *review.Findings) {
	if _, is := partOf(cm); !is {
		return
	}
	if _, both := cm.Labels[policyv1alpha1.BundleLabel]; both {
		found.Deny(field.Forbidden(labelsPath.Key(policyv1alpha1.BundlePartLabel), fmt.Sprintf(
			"a ConfigMap is the head of a bundle (%s) or holds a part of one, and not both; take one of the labels away",
			policyv1alpha1.BundleLabel)))
		return
	}
	if stage, set := cm.Labels[policyv1alpha1.StageLabel]; set {
		found.Warn("label %s: %s means nothing on a part of a bundle: the stage of its head counts", policyv1alpha1.StageLabel, stage)
	}
	for _, key := range slices.Sorted(maps.Keys(cm.BinaryData)) {
		found.Warn("binaryData[%s] is not read: the files of a bundle are text in UTF-8; store it under data", key)
	}
}

// checkListed refuses that a listed file goes, or becomes another. One that is not as it is listed may become so.
func checkListed(h *head, part *corev1.ConfigMap, left map[string]string, found *review.Findings) {
	if !h.kept() {
		return
	}
	var broken []string
	for _, file := range bundle.Parts(h.object.Data[bundle.PartsFile]) {
		data, there := part.Data[file.Name]
		if file.ConfigMap != part.Name || !there || !file.Is(data) {
			continue
		}
		if after, stays := left[file.Name]; !stays || !file.Is(after) {
			broken = append(broken, file.Name)
		}
	}
	if len(broken) > 0 {
		found.Deny(field.Forbidden(field.NewPath("data"), fmt.Sprintf(
			"ConfigMap %s, of stage %s, lists %s here by digest, so that it stays as it is, with label %s. "+
				"A change is a new version in ConfigMaps of other names, and what is not used any more goes after its head",
			h.object.Name, h.stage, strings.Join(broken, ", "), policyv1alpha1.BundlePartLabel)))
	}
}
