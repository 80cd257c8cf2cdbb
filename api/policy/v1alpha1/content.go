// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "slices"

// Holds says that a revision is what the manager makes, or made, of a bundle whose files have a digest. They are its whole content, or
// those of a ConfigMap which leaves files out that were filled in when it was accepted, whatever would be filled in today.
func (r *PolicyRevision) Holds(bundle, digest string) bool {
	if digest == "" || r.Spec.Bundle != bundle {
		return false
	}
	return r.Spec.Digest == digest || r.Spec.Source != nil && r.Spec.Source.Digest == digest ||
		slices.ContainsFunc(r.Status.Heads, func(h LabelledHead) bool { return h.Digest == digest })
}
