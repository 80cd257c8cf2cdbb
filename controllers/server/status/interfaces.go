// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// TargetHTTP is the boot target for which a boot service finds the machine by a MAC address; for Pxe it uses the UUID.
const TargetHTTP = "UefiHttp"

// Stated is what the annotation of the BMC says of the MAC addresses of the server's system.
type Stated struct {
	MACs []string
	// Unread says why the annotation counts for nothing; empty where it can be read.
	Unread string
}

// KnownInterfaces decides what status.networkInterfaces says before the machine reports: what the BMC shows, else what its
// annotation gives. What came from the annotation is replaced; anything else that is stored stays.
func KnownInterfaces(stored, shown []v1alpha1.NetworkInterface, s Stated) []v1alpha1.NetworkInterface {
	switch {
	case len(stored) > 0 && !AllStated(stored):
		return stored
	case len(shown) > 0:
		return shown
	case s.Unread != "":
		return stored
	}
	var all []v1alpha1.NetworkInterface
	for i, mac := range s.MACs {
		all = append(all, v1alpha1.NetworkInterface{Name: fmt.Sprintf("%s%d", policies.StatedInterface, i), MACAddress: mac})
	}
	return all
}

// AllStated says that every interface came from the annotation; it is true of none.
func AllStated(all []v1alpha1.NetworkInterface) bool {
	for i := range all {
		if !strings.HasPrefix(all[i].Name, policies.StatedInterface) {
			return false
		}
	}
	return true
}

// recordInterfaces says that a machine cannot be booted because no MAC address of it is known.
func (r *record) recordInterfaces() {
	if r.BootTarget != TargetHTTP || len(r.s.Status.NetworkInterfaces) > 0 {
		r.drop(v1alpha1.ConditionInterfacesUnknown)
		return
	}
	if r.Facts.BMC.Identity != policies.IdentitySame || r.Reading.Snapshot.NICsIncomplete {
		return // the BMC does not answer in full; what was said before stands
	}
	r.condition(v1alpha1.ConditionInterfacesUnknown, metav1.ConditionTrue, v1alpha1.ReasonInterfacesUnreported,
		withoutInterfaces(r.s, r.Stated.Unread))
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
