// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/webhooks/review"
)

// checkRetention warns of a change that ends the retention of data whose holder has ended: nothing else stands between
// that data and the wipe.
func checkRetention(c review.Change[v1alpha1.Server], sanitization string, found *review.Findings) {
	if c.Created() || !v1alpha1.KeptAfterRelease(c.Old) || v1alpha1.KeptAfterRelease(c.New) {
		return
	}
	what := "spec.reclaimPolicy is no longer Retain"
	if c.New.Spec.ServerClaimRef == nil {
		what = "spec.serverClaimRef is cleared"
	}
	if sanitization == bundle.SanitizationNone {
		found.Warn("%s: the data that is kept on this server is given up at once, and the server may be offered again; "+
			"its data is NOT erased (sanitization: none)", what)
		return
	}
	found.Warn("%s: THE DATA THAT IS KEPT ON THIS SERVER WILL BE ERASED AT ONCE (machine %s); to keep it, set the field back now",
		what, c.Old.Spec.SystemUUID)
}
