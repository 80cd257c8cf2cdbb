// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/internal/bmcsystems"
	"github.com/metalaw/metalaw/policies"
)

// targetHTTP is the boot target for which a boot service finds the machine by a MAC address; for Pxe it uses the UUID.
const targetHTTP = "UefiHttp"

// statedInterface begins the name of an interface whose MAC address the annotation of the BMC gives.
const statedInterface = policies.StatedInterface

// stated is what the annotations of the BMC say of the server's system.
type stated struct {
	macs []string
	// macsUnread says why the annotation that gives MAC addresses counts for nothing; empty where it can be read.
	macsUnread string
	// assigned is the UUID that was given to the system, and what proves it; empty where none was, or where that cannot be read.
	assigned bmcsystems.Assignment
}

// statedOn reads the annotations of a BMC for the system at a URI.
func statedOn(bmc *v1alpha1.BMC, uri string) stated {
	var s stated
	macs, err := bmcsystems.ParseMACs(bmc.Annotations[v1alpha1.HostMACsAnnotation])
	if err != nil {
		s.macsUnread = err.Error()
	}
	s.macs = macs[bmcsystems.Key(uri)]
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

// knownInterfaces decides what status.networkInterfaces says before the machine reports: what the BMC shows, else what its
// annotation gives. What came from the annotation is replaced; anything else that is stored stays.
func knownInterfaces(stored, shown []v1alpha1.NetworkInterface, s stated) []v1alpha1.NetworkInterface {
	switch {
	case len(stored) > 0 && !allStated(stored):
		return stored
	case len(shown) > 0:
		return shown
	case s.macsUnread != "":
		return stored
	}
	var all []v1alpha1.NetworkInterface
	for i, mac := range s.macs {
		all = append(all, v1alpha1.NetworkInterface{Name: fmt.Sprintf("%s%d", statedInterface, i), MACAddress: mac})
	}
	return all
}

// allStated says that every interface came from the annotation; it is true of none.
func allStated(all []v1alpha1.NetworkInterface) bool {
	for i := range all {
		if !strings.HasPrefix(all[i].Name, statedInterface) {
			return false
		}
	}
	return true
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
	nics := knownInterfaces(nil, interfacesOf(v.reading.Value.NICs), v.stated)
	switch {
	case len(nics) > 0:
		v.server.Status.NetworkInterfaces = nics
		return loop.Waiting("InterfacesRecorded", "the network interfaces are recorded first", time.Millisecond), false
	case v.BootTarget == targetHTTP: // it would boot what the service serves to machines that it does not know
		return loop.Waiting(v1alpha1.ReasonInterfacesUnreported, "a MAC address of the machine; the condition "+
			v1alpha1.ConditionInterfacesUnknown+" says how to give one", v.pollInterval()), false
	}
	return loop.Progress{}, true
}

// recordInterfaces says that a machine cannot be booted because no MAC address of it is known.
func (v *scope) recordInterfaces() {
	if v.BootTarget != targetHTTP || len(v.server.Status.NetworkInterfaces) > 0 {
		v.drop(v1alpha1.ConditionInterfacesUnknown)
		return
	}
	if v.facts.BMC.Identity != policies.IdentitySame || v.reading.Value.NICsIncomplete {
		return // the BMC does not answer in full; what was said before stands
	}
	v.condition(v1alpha1.ConditionInterfacesUnknown, metav1.ConditionTrue, v1alpha1.ReasonInterfacesUnreported,
		loop.Shortened(withoutInterfaces(v.server, v.stated.macsUnread), loop.MaxMessage))
}

// withoutInterfaces says what is wrong, what follows and what to do.
func withoutInterfaces(s *v1alpha1.Server, unread string) string {
	const wrong = "The BMC reports no network interface, and a UEFI HTTP boot is matched by MAC address. Nothing is booted. "
	switch {
	case s.Spec.BMCRef == nil:
		return wrong + "Manage the server through a BMC object instead of spec.bmc, and annotate that."
	case unread != "":
		return fmt.Sprintf("%sCorrect annotation %s of BMC %s: %s", wrong, v1alpha1.HostMACsAnnotation, s.Spec.BMCRef.Name, unread)
	}
	return fmt.Sprintf("%sSet annotation %s of BMC %s to {%q: [MAC]}.", wrong, v1alpha1.HostMACsAnnotation, s.Spec.BMCRef.Name, s.Spec.SystemURI)
}
