// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// recordHardware brings what is known of the machine into the status: power and identity from the BMC, the rest from the
// probe where it has reported and from the BMC until then. What cannot be read now is left as it was, but for power,
// which is unknown when nobody knows it.
func (r *record) recordHardware() {
	st := &r.s.Status
	if !r.Reading.Tried {
		return
	}
	if r.Facts.BMC.Identity != policies.IdentitySame {
		st.PowerState = v1alpha1.PowerStateUnknown
		return
	}
	s := r.Reading.Snapshot
	if !r.passing(s.Power) {
		st.PowerState = powerState(s.Power)
	}
	if s.LED != redfish.LEDUnknown && s.LED != "" {
		st.IndicatorLED = v1alpha1.IndicatorLED(s.LED)
	}
	st.Manufacturer = cmp.Or(s.Identity.Manufacturer, st.Manufacturer)
	st.Model = cmp.Or(s.Identity.Model, st.Model)
	st.SKU = cmp.Or(s.Identity.SKU, st.SKU)
	st.SerialNumber = cmp.Or(s.Identity.SerialNumber, st.SerialNumber)
	st.BIOSVersion = cmp.Or(s.BIOSVersion, st.BIOSVersion)
	if s.MemoryBytes > 0 {
		st.TotalSystemMemory = sameOrNew(st.TotalSystemMemory, s.MemoryBytes)
	}
	if !s.NICsIncomplete {
		st.NetworkInterfaces = KnownInterfaces(st.NetworkInterfaces, InterfacesOf(s.NICs), r.Stated)
	}
	if r.Inventory != nil && r.Inventory.Report != nil && !policies.ReportVoided(r.Inventory) {
		r.recordReport(&r.Inventory.Report.Data)
	}
}

// recordReport prefers what the machine says of itself.
func (r *record) recordReport(data *policyv1alpha1.ProbeData) {
	st := &r.s.Status
	if nics := reportedInterfaces(data); len(nics) > 0 {
		st.NetworkInterfaces = nics
	}
	if cpus := reportedProcessors(data); len(cpus) > 0 {
		st.Processors = cpus
	}
	if disks := reportedStorage(data); len(disks) > 0 {
		st.Storages = disks
	}
	var memory int64
	for _, m := range data.Memory {
		memory += m.SizeBytes
	}
	if memory > 0 {
		st.TotalSystemMemory = sameOrNew(st.TotalSystemMemory, memory)
	}
}

// recordHealth says what the BMC says of the machine's health. What it said last stands while it says nothing.
func (r *record) recordHealth() {
	if r.Facts.BMC.Identity != policies.IdentitySame {
		return
	}
	stops := r.Settings.Health.CriticalStops
	reason, known := policies.HealthReason(r.System, stops)
	if !known {
		return
	}
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonHealthOK {
		status = metav1.ConditionTrue
	}
	r.condition(v1alpha1.ConditionHealthy, status, reason, healthWords(reason, r.Reading.Snapshot.Critical, stops))
}

// healthWords say what the BMC reports, which part it is, and what follows.
func healthWords(reason string, parts []redfish.HealthPart, stops string) string {
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	which := "names no part for it"
	if len(names) > 0 {
		which = "names " + strings.Join(names, ", ")
	}
	switch {
	case reason == v1alpha1.ReasonHealthOK:
		return "The BMC reports no trouble."
	case reason == v1alpha1.ReasonHealthWarning:
		return "The BMC reports health Warning. That stops nothing. Its Chassis and Systems resources say which part."
	case reason == v1alpha1.ReasonHealthTolerated:
		return fmt.Sprintf("The BMC reports health Critical and %s. That stops nothing. See its log.", which)
	case stops == bundle.StopsOffering:
		return fmt.Sprintf("The BMC reports health Critical and %s. No claim gets the server until that is mended.", which)
	}
	return fmt.Sprintf("The BMC reports health Critical and %s. The server is neither inspected nor offered. Mend it, then retry.", which)
}

// passing says that a power state is on its way to what was just asked for: it is not worth a write of its own.
func (r *record) passing(p redfish.PowerState) bool {
	l := r.s.Status.Lifecycle
	return (p == redfish.PowerPoweringOn || p == redfish.PowerPoweringOff) &&
		l != nil && l.Request != nil && l.Request.ShownAt == nil && r.Power.Since < WorthTelling
}

func powerState(p redfish.PowerState) v1alpha1.PowerState {
	if p == redfish.PowerUnknown {
		return v1alpha1.PowerStateUnknown
	}
	return v1alpha1.PowerState(p)
}

// sameOrNew keeps the stored quantity where it means the same, because its spelling may differ.
func sameOrNew(stored *resource.Quantity, bytes int64) *resource.Quantity {
	if stored != nil && stored.Value() == bytes {
		return stored
	}
	return resource.NewQuantity(bytes, resource.BinarySI)
}

// InterfacesOf are the network interfaces that a BMC shows with their MAC addresses.
func InterfacesOf(nics []redfish.NIC) []v1alpha1.NetworkInterface {
	var all []v1alpha1.NetworkInterface
	for _, n := range nics {
		if n.MACAddress != "" {
			all = append(all, v1alpha1.NetworkInterface{Name: n.Name, MACAddress: n.MACAddress})
		}
	}
	return all
}

func reportedInterfaces(data *policyv1alpha1.ProbeData) []v1alpha1.NetworkInterface {
	neighbors := map[string][]v1alpha1.LLDPNeighbor{}
	for _, l := range data.LLDP {
		for _, n := range l.Neighbors {
			neighbors[l.Name] = append(neighbors[l.Name], v1alpha1.LLDPNeighbor{MACAddress: n.ChassisID, PortID: n.PortID,
				PortDescription: n.PortDescription, SystemName: n.SystemName, SystemDescription: n.SystemDescription})
		}
	}
	var all []v1alpha1.NetworkInterface
	for _, n := range data.NetworkInterfaces {
		if n.MACAddress == "" {
			continue
		}
		nic := v1alpha1.NetworkInterface{Name: n.Name, MACAddress: strings.ToLower(n.MACAddress), IPs: n.IPAddresses,
			CarrierStatus: n.CarrierStatus, Neighbors: neighbors[n.Name]}
		all = append(all, nic)
	}
	return all
}

func reportedProcessors(data *policyv1alpha1.ProbeData) []v1alpha1.Processor {
	var all []v1alpha1.Processor
	for _, c := range data.CPU {
		all = append(all, v1alpha1.Processor{ID: fmt.Sprint(c.ID), Type: "CPU", Manufacturer: c.Vendor, Model: c.Model,
			TotalCores: c.TotalCores, TotalThreads: c.TotalHardwareThreads})
	}
	return all
}

func reportedStorage(data *policyv1alpha1.ProbeData) []v1alpha1.Storage {
	var drives []v1alpha1.StorageDrive
	for _, d := range data.Storage {
		media := "SSD"
		if d.Rotational {
			media = "HDD"
		}
		drives = append(drives, v1alpha1.StorageDrive{Name: d.Name, MediaType: media, Vendor: d.Vendor, Model: d.Model,
			Capacity: resource.NewQuantity(d.SizeBytes, resource.BinarySI), State: v1alpha1.StorageStateEnabled})
	}
	if len(drives) == 0 {
		return nil
	}
	return []v1alpha1.Storage{{Name: "block", State: v1alpha1.StorageStateEnabled, Drives: drives}}
}
