// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// tell reports that a claim became Bound, on the claim and on its server. It is called after the write has succeeded, so that the Event
// never says what the condition does not: a server that is reserved on paper may be held back for as long as a freeze lasts.
func (s *Subject) tell(ctx context.Context, before, after *v1alpha1.ServerClaim, _ standing) {
	if before.Status.Phase == v1alpha1.PhaseBound || after.Status.Phase != v1alpha1.PhaseBound || after.Spec.ServerRef == nil {
		return
	}
	s.Recorder.Eventf(after, nil, corev1.EventTypeNormal, v1alpha1.ReasonBound, "Bind", "Bound to server %s", after.Spec.ServerRef.Name)
	var server v1alpha1.Server
	if found, err := get(ctx, s.Client, types.NamespacedName{Name: after.Spec.ServerRef.Name}, &server); err == nil && found {
		// It lies in namespace default, which more people read than may know the names of other tenants' claims.
		s.Recorder.Eventf(&server, nil, corev1.EventTypeNormal, v1alpha1.ReasonBound, "Bind", "Bound to the claim that spec.serverClaimRef names")
	}
}
