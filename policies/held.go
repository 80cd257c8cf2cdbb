// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/selection"
)

// HolderOf is what a server records of the claim that it is written for.
func HolderOf(s *v1alpha1.Server) claims.Holder {
	ref := s.Spec.ServerClaimRef
	h := claims.Holder{UID: s.Annotations[v1alpha1.ClaimUIDAnnotation], Ended: v1alpha1.BindingEnded(s), Kept: v1alpha1.KeptAfterRelease(s)}
	if ref != nil {
		h.Claim = claims.Key{Namespace: ref.Namespace, Name: ref.Name}
	}
	return h
}

// HeldOf is how a server counts for the quota of the namespace whose claim it is written for.
func HeldOf(s *v1alpha1.Server) claims.Held {
	if v1alpha1.BindingEnded(s) {
		return claims.Held{}
	}
	h := claims.Held{Servers: 1}
	if orphaned(s) {
		h.Orphaned = 1
	}
	return h
}

// orphaned says that the claim for which a server is held is known to be gone without a release.
func orphaned(s *v1alpha1.Server) bool {
	missing := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionClaimMissing)
	if missing == nil || missing.Status != metav1.ConditionTrue {
		return false
	}
	return missing.Reason == v1alpha1.ReasonClaimNotFound || missing.Reason == v1alpha1.ReasonClaimUIDMismatch
}

// HeldUpBy is the code of the hard contract that does not pass for a server until an operator acts; empty where there is none.
func HeldUpBy(s *v1alpha1.Server) string {
	switch {
	case v1alpha1.KeptAfterRelease(s):
		return selection.CodeClaimed
	case s.Spec.ServerClaimRef == nil && rests(s):
		return selection.CodeState
	}
	return ""
}

// rests says that a server is in a state other than Available which it does not leave by itself. Which states those are is for the
// bundle to say, and its conditions tell; the states by which every bundle means it do so where it has none yet.
func rests(s *v1alpha1.Server) bool {
	switch s.Status.State { //nolint:exhaustive // the others are for the bundle to say
	case v1alpha1.StateAvailable:
		return false
	case v1alpha1.StateParked, v1alpha1.StateError, v1alpha1.StateObserving, v1alpha1.StateDecommissioned:
		return true
	}
	return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionStalled) ||
		meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady)
}
