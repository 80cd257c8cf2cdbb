// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/api/canary"
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

// checkLabels refuses what admission refuses of a head's labels and annotations: a stage that there is not, a canary of nobody,
// and, of more than a draft, another name than the bundle's.
func (c *configMap) checkLabels(path string, files bundle.Files) error {
	stage := cmp.Or(c.labels[policyv1alpha1.StageLabel], policyv1alpha1.LabelDraft)
	if stages := policyv1alpha1.Stages(); !slices.Contains(stages, stage) {
		return fmt.Errorf("%s: ConfigMap %s: label %s is %q; there are %s",
			path, c.name, policyv1alpha1.StageLabel, stage, strings.Join(stages, ", "))
	}
	if stage == policyv1alpha1.LabelDraft {
		return nil
	}
	if label, name := c.labels[bundleLabel], nameIn(files); name != "" && name != label {
		return fmt.Errorf("%s: ConfigMap %s: label %s says %q and %s names the bundle %q; write the same name in both",
			path, c.name, bundleLabel, label, bundle.BundleFile, name)
	}
	if stage != policyv1alpha1.LabelCanary {
		return nil
	}
	if _, faults := canary.Parse(c.annotations); len(faults) > 0 {
		return fmt.Errorf("%s: ConfigMap %s: annotation %s: %s", path, c.name, faults[0].Annotation(), faults[0])
	}
	return nil
}

// nameIn is the name in bundle.yaml; empty where none can be read, which the acceptance of the bundle tells.
func nameIn(files bundle.Files) string {
	var head struct{ Name string }
	if yaml.Unmarshal(files[bundle.BundleFile], &head) != nil {
		return ""
	}
	return head.Name
}
