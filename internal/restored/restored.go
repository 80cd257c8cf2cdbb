// SPDX-License-Identifier: Apache-2.0

// Package restored says which servers are in doubt because the cluster's store was restored: what is stored of their
// machines may be older than what is on their disks.
package restored

import (
	"fmt"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// The values of v1alpha1.RestoredDoubtAnnotation. Any other value counts as Doubted.
const (
	// Doubted has the server left as it is.
	Doubted = "doubted"
	// Confirmed asks the manager to end the doubt.
	Confirmed = "confirmed"
	// Inspect is the manager's: a user has confirmed a server that no claim holds, and its disks are to be read first.
	Inspect = "inspect"
)

// Phase is how far the doubt about a server has come.
type Phase uint8

const (
	// None is no doubt.
	None Phase = iota
	// Stands has the server left as it is.
	Stands
	// Inspection has the server's disks read: only what is read now counts.
	Inspection
)

// Of is the phase of the doubt about a server, by what its inventory says and by its annotation; inventory may be nil. Where
// the two do not agree yet, the doubt stands.
func Of(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) Phase {
	d := On(inventory)
	switch value, annotated := s.Annotations[v1alpha1.RestoredDoubtAnnotation]; {
	case !annotated && d == nil:
		return None
	case value == Inspect && d != nil && d.InspectSince != nil:
		return Inspection
	}
	return Stands
}

// On is the doubt that an inventory remembers; nil where there is none.
func On(inventory *policyv1alpha1.ServerInventory) *policyv1alpha1.RestoredDoubt {
	if inventory == nil || inventory.Custody == nil {
		return nil
	}
	return inventory.Custody.Doubt
}

// Marked says that a server bears the annotation, whatever its value.
func Marked(s *v1alpha1.Server) bool {
	_, marked := s.Annotations[v1alpha1.RestoredDoubtAnnotation]
	return marked
}

// Begun says that the inspection which the doubt asks for has begun in the lifecycle of the server.
func Begun(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) bool {
	d, l := On(inventory), s.Status.Lifecycle
	return d != nil && d.InspectSince != nil && l != nil && l.RestoredInspection != nil &&
		l.RestoredInspection.Equal(d.InspectSince)
}

// Words say what holds a server in doubt, and what ends it.
func Words(server string) string {
	return fmt.Sprintf("The cluster's store was restored: what is stored of this machine may be older than its disks. "+
		"Nothing is done to it. Compare, then: metalaw restored --confirm %s", server)
}

// Waits says that nothing moves the server for now, so that no deadline runs against it.
func Waits(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) bool {
	switch Of(s, inventory) {
	case None:
		return false
	case Inspection:
		return !Begun(s, inventory)
	case Stands:
	}
	return true
}
