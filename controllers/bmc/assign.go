// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bmcsystems"
)

// assign decides which systems bear the UUID that the annotation assigns. It returns a copy. A UUID that a system shows itself
// counts; an assigned one counts where serial number and MAC address prove the system at this reading.
func assign(systems []System, annotation string) []System {
	assigned, err := bmcsystems.ParseAssignments(annotation)
	resolved := slices.Clone(systems)
	for i := range resolved {
		s := &resolved[i]
		if s.Err != "" || s.Identity.UUID != "" {
			continue
		}
		a, stated := assigned[bmcsystems.Key(s.URI)]
		switch {
		case err != nil:
			s.Refused = fmt.Sprintf("the annotation %s cannot be read, so that the system %s, which shows no UUID, is not managed: %v",
				v1alpha1.SystemUUIDsAnnotation, s.URI, err)
		case !stated:
			s.Refused = unassigned(*s)
		default:
			if s.Refused = unproven(systems, *s, a); s.Refused == "" {
				s.Identity.UUID, s.Assignment = a.UUID, a
			}
		}
	}
	return resolved
}

// unassigned says how a system that shows no UUID gets one, with what it shows of itself.
func unassigned(s System) string {
	if s.Identity.SerialNumber == "" && len(s.MACs) == 0 {
		return fmt.Sprintf("the system %s shows no UUID, no serial number and no MAC address, so it cannot be told from another; "+
			"it is not managed", s.URI)
	}
	return fmt.Sprintf("the system %s shows no UUID, so it is not managed. Retry once its BMC has started, or assign its SMBIOS UUID by annotation "+
		"%s (it shows %s)", s.URI, v1alpha1.SystemUUIDsAnnotation,
		bmcsystems.Words(s.Identity.SerialNumber, strings.Join(s.MACs, ", ")))
}

// unproven says why a system is not the one to which a UUID was assigned; empty where it is.
func unproven(systems []System, s System, a bmcsystems.Assignment) string {
	sharesSerial := slices.ContainsFunc(systems, func(other System) bool {
		return other.URI != s.URI && other.Err == "" && strings.EqualFold(other.Identity.SerialNumber, s.Identity.SerialNumber)
	})
	var why string
	switch {
	case a.SerialNumber != "" && s.Identity.SerialNumber == "":
		why = fmt.Sprintf("shows no serial number, and %q is wanted", a.SerialNumber)
	case a.SerialNumber != "" && !strings.EqualFold(a.SerialNumber, s.Identity.SerialNumber):
		why = fmt.Sprintf("shows the serial number %q and not %q", s.Identity.SerialNumber, a.SerialNumber)
	case a.MAC != "" && !slices.Contains(s.MACs, a.MAC):
		why = fmt.Sprintf("does not show the MAC address %s", a.MAC)
	case a.MAC == "" && sharesSerial:
		why = "shares its serial number with another system, which takes a MAC address besides"
	default:
		return ""
	}
	return fmt.Sprintf("the system %s %s, so it is not taken for the machine %s that is assigned to it; correct the annotation %s, or the machine",
		s.URI, why, a.UUID, v1alpha1.SystemUUIDsAnnotation)
}

// moved says why a system may not become the machine of the Server that has its assigned UUID; empty where it may. The Server
// would else stand for another machine, with what is known of the former one's disks.
func moved(known server, s System, bmc string) string {
	if s.Assignment.UUID == "" {
		return ""
	}
	switch {
	case known.bmc == bmc && known.uri != "" && !sameURI(known.uri, s.URI):
		return fmt.Sprintf("the UUID %s of Server %s is assigned to the system %s now and was to %s; correct the annotation %s, or delete the Server",
			s.Assignment.UUID, known.name, s.URI, known.uri, v1alpha1.SystemUUIDsAnnotation)
	case known.holds && s.Assignment.MAC != "" && len(known.hardware.MACs) > 0 && !known.hardware.HasMAC(s.Assignment) && known.bmc != bmc:
		return fmt.Sprintf("the UUID %s of Server %s, which is held or Dirty, is assigned to a system with the MAC address %s. That machine "+
			"does not have it; correct the annotation %s", s.Assignment.UUID, known.name, s.Assignment.MAC, v1alpha1.SystemUUIDsAnnotation)
	case known.holds && known.hardware.Contradicts(asShown(s)):
		return fmt.Sprintf("the UUID %s of %s, which is held or Dirty, is assigned to the system %s with %s. "+
			"That is another machine's; correct the annotation %s", s.Assignment.UUID, known.title(), s.URI,
			bmcsystems.Words(asShown(s).SerialNumber, s.Assignment.MAC), v1alpha1.SystemUUIDsAnnotation)
	}
	return ""
}

// asShown is an assignment with the serial number that its system shows, where it names none.
func asShown(s System) bmcsystems.Assignment {
	a := s.Assignment
	a.SerialNumber = cmp.Or(a.SerialNumber, s.Identity.SerialNumber)
	return a
}

// title names what knows a machine: its Server, else its inventory.
func (s server) title() string {
	if s.name == "" {
		return "a ServerInventory"
	}
	return "Server " + s.name
}
