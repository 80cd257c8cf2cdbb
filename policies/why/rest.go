// SPDX-License-Identifier: Apache-2.0

package why

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
)

// heldUpBy is the code of the hard contract that does not pass for a server until whoever runs the fleet acts; empty where there is none.
func heldUpBy(s *v1alpha1.Server) string {
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
	case v1alpha1.StateParked, v1alpha1.StateError, v1alpha1.StateObserving:
		return true
	}
	return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionStalled) ||
		meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady)
}

// eligible is selection.Eligible, with words for a server that no claim has any more and whose data is kept.
func (s *server) eligible(spec selection.ClaimSpec) (ok bool, code, message string) {
	ok, code, message = selection.Eligible(spec, s.state)
	if code == selection.CodeClaimed && s.heldUp == code {
		message = "the claim that held it has ended, and its data is kept (reclaimPolicy Retain) until it is given up"
	}
	return ok, code, message
}
