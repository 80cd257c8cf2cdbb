// SPDX-License-Identifier: Apache-2.0

// Package orphaned knows the manager's own boot configurations whose owner reference is gone. `kubectl delete
// --cascade=orphan` has the garbage collector take the reference away, and such an object would boot the machine for
// its next holder.
package orphaned

import (
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Boot says that a boot configuration has no owner, and that the manager wrote it for the purpose. Its annotation says
// so. One of another operator has no such annotation: that one is known by the reference of a server.
func Boot(b *v1alpha1.ServerBootConfiguration, purpose string, servers ...*v1alpha1.Server) bool {
	if b == nil || len(b.OwnerReferences) > 0 {
		return false
	}
	if written, told := b.Annotations[v1alpha1.BootPurposeAnnotation]; told {
		return written == purpose
	}
	return slices.ContainsFunc(servers, func(s *v1alpha1.Server) bool { return s != nil && names(s, b, purpose) })
}

// names says that a server names the boot configuration for the purpose.
func names(s *v1alpha1.Server, b *v1alpha1.ServerBootConfiguration, purpose string) bool {
	ref := s.Spec.BootConfigurationRef
	if purpose == v1alpha1.BootPurposeMaintenance {
		ref = s.Spec.MaintenanceBootConfigurationRef
	}
	return ref != nil && ref.Namespace == b.Namespace && ref.Name == b.Name
}
