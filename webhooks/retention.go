// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

// checkRetention warns of a change that ends the retention of data whose holder has ended: nothing else stands between
// that data and the wipe.
func checkRetention(c change[v1alpha1.Server], sanitization string, found *findings) {
	if c.created() || !v1alpha1.KeptAfterRelease(c.old) || v1alpha1.KeptAfterRelease(c.new) {
		return
	}
	what := "spec.reclaimPolicy is no longer Retain"
	if c.new.Spec.ServerClaimRef == nil {
		what = "spec.serverClaimRef is cleared"
	}
	if sanitization == bundle.SanitizationNone {
		found.warn("%s: the data that is kept on this server is given up at once, and the server may be offered again; "+
			"its data is NOT erased (sanitization: none)", what)
		return
	}
	found.warn("%s: THE DATA THAT IS KEPT ON THIS SERVER WILL BE ERASED AT ONCE (machine %s); to keep it, set the field back now",
		what, c.old.Spec.SystemUUID)
}
