// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/internal/bmcsystems"
	"github.com/metalaw/metalaw/policies"
)

// stated is what the annotations of the BMC say of the server's system.
type stated struct {
	status.Stated
	// assigned is the UUID that was given to the system, and what proves it; empty where none was, or where that cannot be read.
	assigned bmcsystems.Assignment
	// ways are those of BootWaysAnnotation.
	ways string
}

// statedOn reads the annotations of a BMC for the system at a URI.
func statedOn(bmc *v1alpha1.BMC, uri string) stated {
	s := stated{ways: bmc.Annotations[v1alpha1.BootWaysAnnotation]}
	macs, err := bmcsystems.ParseMACs(bmc.Annotations[v1alpha1.HostMACsAnnotation])
	if err != nil {
		s.Unread = err.Error()
	}
	s.MACs = macs[bmcsystems.Key(uri)]
	if assigned, err := bmcsystems.ParseAssignments(bmc.Annotations[v1alpha1.SystemUUIDsAnnotation]); err == nil {
		s.assigned = assigned[bmcsystems.Key(uri)]
	}
	return s
}

// provenBy is what must be shown for an assigned UUID. While the machine may hold data, an assignment that names other hardware than
// was recorded proves nothing, so that nothing is read of another machine or written to it. A MAC address that the operating
// system does not report counts together with the serial number.
func provenBy(a bmcsystems.Assignment, recorded bmcsystems.Record, holdsData bool) bmcsystems.Assignment {
	if !holdsData {
		return a
	}
	if a.SerialNumber == "" && len(recorded.SerialNumbers) > 0 && !recorded.HasMAC(a) {
		a.SerialNumber = recorded.SerialNumbers[0]
	}
	if recorded.Contradicts(a) {
		a.SerialNumber, a.MAC = "", ""
	}
	return a
}

// interfacesKnown sees to status.networkInterfaces before a boot configuration is written, because boot services find
// the machine by them and do not watch servers. A PXE boot needs none: it is matched by UUID.
func (v *scope) interfacesKnown() (loop.Progress, bool) {
	if len(v.server.Status.NetworkInterfaces) > 0 {
		return loop.Progress{}, true
	}
	if v.facts.BMC.Identity != policies.IdentitySame {
		return loop.Waiting(power.WaitsForReading, "the BMC to name the network interfaces", 0), false
	}
	if v.reading.Value.NICsIncomplete && v.now.Sub(v.server.Status.Lifecycle.EnteredAt.Time) < v.PowerGrace {
		return loop.Waiting(power.WaitsForReading, "the BMC to name all network interfaces", v.pollInterval()), false
	}
	nics := status.KnownInterfaces(nil, status.InterfacesOf(v.reading.Value.NICs), v.stated.Stated)
	switch {
	case len(nics) > 0:
		v.server.Status.NetworkInterfaces = nics
		return loop.Waiting("InterfacesRecorded", "the network interfaces are recorded first", time.Millisecond), false
	case v.BootTarget == status.TargetHTTP: // it would boot what the service serves to machines that it does not know
		return loop.Waiting(v1alpha1.ReasonInterfacesUnreported, "a MAC address of the machine; the condition "+
			v1alpha1.ConditionInterfacesUnknown+" says how to give one", v.pollInterval()), false
	}
	return loop.Progress{}, true
}
