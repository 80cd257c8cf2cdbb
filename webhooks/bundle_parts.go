// SPDX-License-Identifier: Apache-2.0

package webhooks

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
)

// judgePart keeps the files that a head of stage shadow, canary or active lists as it lists them.
func (l *bundleRules) judgePart(ctx context.Context, c change[corev1.ConfigMap], found *findings) error {
	checkPart(c.new, found)
	name, was := partOf(c.old)
	after, is := partOf(c.new)
	if !was || (is && after == name && maps.Equal(c.old.Data, c.new.Data)) {
		return nil
	}
	// Read past the cache: there are few, and a head that was promoted a moment ago counts.
	var heads corev1.ConfigMapList
	err := l.reader.List(ctx, &heads, client.InNamespace(l.namespace), client.MatchingLabels{policyv1alpha1.BundleLabel: name})
	if err != nil {
		return fmt.Errorf("the ConfigMaps of bundle %q cannot be read: %w", name, err)
	}
	var left map[string]string
	if is && after == name {
		left = c.new.Data
	}
	for i := range heads.Items {
		checkListed(headOf(&heads.Items[i]), c.old, left, found)
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
func checkPart(cm *corev1.ConfigMap, found *findings) {
	if _, is := partOf(cm); !is {
		return
	}
	if _, both := cm.Labels[policyv1alpha1.BundleLabel]; both {
		found.deny(field.Forbidden(labelsPath.Key(policyv1alpha1.BundlePartLabel), fmt.Sprintf(
			"a ConfigMap is the head of a bundle (%s) or holds a part of one, and not both; take one of the labels away",
			policyv1alpha1.BundleLabel)))
		return
	}
	if stage, set := cm.Labels[policyv1alpha1.StageLabel]; set {
		found.warn("label %s: %s means nothing on a part of a bundle: the stage of its head counts", policyv1alpha1.StageLabel, stage)
	}
	for _, key := range slices.Sorted(maps.Keys(cm.BinaryData)) {
		found.warn("binaryData[%s] is not read: the files of a bundle are text in UTF-8; store it under data", key)
	}
}

// checkListed refuses that a listed file goes, or becomes another. One that is not as it is listed may become so.
func checkListed(h *head, part *corev1.ConfigMap, left map[string]string, found *findings) {
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
		found.deny(field.Forbidden(field.NewPath("data"), fmt.Sprintf(
			"ConfigMap %s, of stage %s, lists %s here by digest, so that it stays as it is, with label %s; "+
				"a change is a new version in ConfigMaps of other names, and what is not used any more goes after its head",
			h.object.Name, h.stage, strings.Join(broken, ", "), policyv1alpha1.BundlePartLabel)))
	}
}
