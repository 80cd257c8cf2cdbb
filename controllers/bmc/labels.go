// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"encoding/json"
	"maps"
)

// follow carries what changed on the BMC since the last copy over to a server, and nothing else: a label that an
// operator set, changed or took away on the server stays as it is until the BMC's own changes. It returns the labels to have, and
// the copy to remember.
func follow(bmc, copied, server map[string]string) (labels, remember map[string]string) {
	labels = maps.Clone(server)
	if labels == nil {
		labels = map[string]string{}
	}
	for key, old := range copied {
		if _, still := bmc[key]; !still && labels[key] == old {
			delete(labels, key)
		}
	}
	for key, value := range bmc {
		if old, before := copied[key]; !before || old != value {
			labels[key] = value
		}
	}
	return labels, maps.Clone(bmc)
}

// copiedLabels reads v1alpha1.LabelsAnnotation. What cannot be read counts as nothing copied, so that nothing is taken away.
func copiedLabels(annotation string) map[string]string {
	var copied map[string]string
	if json.Unmarshal([]byte(annotation), &copied) != nil {
		return nil // json keeps what it understood; half of a copy would be worse than none
	}
	return copied
}
