// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

// Held counts the servers that are written for claims of a namespace, as its quota does. A claim whose release is recorded does not
// count; one that is gone without a release does, because its server is kept for it.
type Held struct {
	Servers int
	// Orphaned are those of them whose claim is known to be gone.
	Orphaned int
}

// Count adds a server that is written for a claim, or takes it away again.
func (h *Held) Count(s *v1alpha1.Server, by int) {
	if v1alpha1.BindingEnded(s) {
		return
	}
	h.Servers += by
	if orphaned(s) {
		h.Orphaned += by
	}
}

// orphaned says that the claim for which a server is held is known to be gone without a release.
func orphaned(s *v1alpha1.Server) bool {
	missing := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionClaimMissing)
	if missing == nil || missing.Status != metav1.ConditionTrue {
		return false
	}
	return missing.Reason == v1alpha1.ReasonClaimNotFound || missing.Reason == v1alpha1.ReasonClaimUIDMismatch
}

// QuotaExceeded says in words that a namespace which has so many servers does not get so many more; empty where it may. Servers whose
// claims are gone are told of, because nothing that its claims do gives those back.
func QuotaExceeded(q bundle.Quota, namespace string, held Held, more int) string {
	words := q.Exceeded(namespace, held.Servers, more)
	if limit, _ := q.Limit(namespace); words == "" || limit == 0 || held.Orphaned == 0 {
		return words
	}
	return words + fmt.Sprintf("; counted are servers held for claims that are gone (%d): ask whoever runs the fleet to release them, "+
		"or create such a claim again under its name, with the spec.serverRef that it had", held.Orphaned)
}
