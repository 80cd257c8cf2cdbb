// SPDX-License-Identifier: Apache-2.0

package status

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Promptly is the status of a server as it is to be stored at once: with everything as it was before that may go with the next write.
// That is the generation that was observed, and the credential of a probe whose machine cannot boot it yet: its token stands in the
// ignition. Before the first decision about a server its hardware waits for that decision. The credential of a wipe is stored at once,
// because budgets count it. What an inspection finds goes with the move that ends it: nothing boots or is erased by it before.
func Promptly(before, after *v1alpha1.Server) v1alpha1.ServerStatus {
	s, was := *after.Status.DeepCopy(), before.Status
	if s.Lifecycle == nil && was.Lifecycle == nil {
		now := s
		s = *was.DeepCopy()
		s.State, s.Conditions, s.Operation = now.State, now.Conditions, now.Operation
	}
	s.ObservedGeneration = was.ObservedGeneration
	for i := range s.Conditions {
		if former := meta.FindStatusCondition(was.Conditions, s.Conditions[i].Type); former != nil {
			s.Conditions[i].ObservedGeneration = former.ObservedGeneration
		}
	}
	if l := s.Lifecycle; l != nil && was.Lifecycle != nil && l.Credential != nil && l.Credential.Purpose == v1alpha1.ProbePurposeProbe {
		l.Credential = was.Lifecycle.Credential
		s.Processors, s.Storages = was.Processors, was.Storages
		if len(was.NetworkInterfaces) > 0 { // the first ones are stored before a boot, for the boot service
			s.NetworkInterfaces = was.NetworkInterfaces
		}
	}
	return s
}
