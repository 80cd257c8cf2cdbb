// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/dedup"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// BenchmarkMemory is what a manager keeps of a fleet: the Servers and inventories in its caches, each decoded by itself as from the
// API server, and the index of the fleet with every server prepared for choosing. What counts is B/server, not the time.
func BenchmarkMemory(b *testing.B) {
	for _, servers := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("servers=%d", servers), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				transform := dedup.Transform()
				stored := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
				for i := range servers {
					store(b, transform, stored, aServer(i), &v1alpha1.Server{})
				}
				ofServers := heap()
				reports := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
				for i := range servers {
					store(b, transform, reports, anInventory(i), &policyv1alpha1.ServerInventory{})
				}
				ofReports := heap()
				f := New(index.New())
				for _, o := range reports.List() {
					f.sawInventory(o.(*policyv1alpha1.ServerInventory))
				}
				for _, o := range stored.List() {
					f.sawServer(o.(*v1alpha1.Server))
				}
				for _, e := range f.Index().Matching(index.Everything) {
					e.Candidate()
				}
				after := heap()
				per := func(bytes uint64) float64 { return float64(bytes) / float64(servers) }
				b.ReportMetric(per(ofServers-before), "servers-B/server")
				b.ReportMetric(per(ofReports-ofServers), "inventories-B/server")
				b.ReportMetric(per(after-ofReports), "index-B/server")
				b.ReportMetric(per(after-before), "B/server")
				b.ReportMetric(float64(after-before)/(1<<20), "MiB")
				runtime.KeepAlive([]any{stored, reports, f})
			}
		})
	}
}

// heap is what is in use once everything is collected that is not.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// store keeps an object as a manager's cache does: decoded, and transformed.
func store(b *testing.B, transform toolscache.TransformFunc, into toolscache.Store, o, decoded client.Object) {
	b.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(data, decoded); err != nil {
		b.Fatal(err)
	}
	kept, err := transform(decoded)
	if err != nil {
		b.Fatal(err)
	}
	if err := into.Add(kept); err != nil {
		b.Fatal(err)
	}
}

func uuidOf(i int) string { return fmt.Sprintf("%08x-7742-3448-3784-823347823834", i) }

// aServer has what a BMC and an agent let a manager write on a Server of two sockets.
func aServer(i int) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("compute-%05d", i), UID: types.UID(uuidOf(i + 1<<20)), ResourceVersion: fmt.Sprint(i + 1),
		CreationTimestamp: metav1.Now(), Finalizers: []string{v1alpha1.FinalizerServer},
		Annotations: map[string]string{policies.RackMetadata: fmt.Sprint("r", i/40), v1alpha1.ClaimUIDAnnotation: uuidOf(i),
			v1alpha1.BindingAnnotation: `{"revision":"default-1.0.0-0123456789","score":100,"runnersUp":12,"at":"2026-01-01T00:00:00Z"}`},
		Labels: map[string]string{v1alpha1.ZoneLabel: fmt.Sprint("z", i%3), v1alpha1.InstanceTypeLabel: fmt.Sprint("type", i%4), "row": fmt.Sprint(i % 10)}},
		Spec: v1alpha1.ServerSpec{SystemUUID: uuidOf(i), SystemURI: "/redfish/v1/Systems/System.Embedded.1",
			ServerClaimRef: &v1alpha1.ObjectReference{Namespace: "team", Name: fmt.Sprint("claim-", i)}}}
	for k := range 12 {
		s.Labels[fmt.Sprintf("inventory.metalaw.dev/fact-%d", k)] = fmt.Sprint(i % 4)
	}
	s.Status.State, s.Status.PowerState = v1alpha1.StateReserved, v1alpha1.PowerStateOn
	s.Status.Manufacturer, s.Status.Model, s.Status.SKU, s.Status.SerialNumber = "Dell Inc.", "PowerEdge R750", "0A6B", fmt.Sprint("SN", i)
	s.Status.BIOSVersion = "1.12.1"
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Revision: "default-1.0.0-0123456789", Entry: 12, EnteredAt: metav1.NowMicro(), Marks: []string{v1alpha1.MarkDirty}}
	for range 7 {
		s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Reserved",
			Message: fmt.Sprintf("Server %d is bound to a claim, which owns power and boot; powered off once released.", i), LastTransitionTime: metav1.Now()})
	}
	for k := range 6 {
		s.Status.NetworkInterfaces = append(s.Status.NetworkInterfaces, v1alpha1.NetworkInterface{Name: fmt.Sprintf("enp%ds0f%d", i%9, k),
			MACAddress: fmt.Sprintf("b0:7b:25:%02x:%02x:%02x", i>>8&255, i&255, k), IPs: []string{fmt.Sprintf("2001:db8::%x:%x", i, k)}, CarrierStatus: "up",
			Neighbors: []v1alpha1.LLDPNeighbor{{MACAddress: fmt.Sprintf("00:1c:73:%02x:00:%02x", i>>8&255, k), PortID: fmt.Sprint("Ethernet", i%48),
				SystemName: fmt.Sprint("leaf-", i/40), SystemDescription: "SONiC Software Version 202311 on a switch of 48 ports"}}})
	}
	for k := range 2 {
		s.Status.Processors = append(s.Status.Processors, v1alpha1.Processor{ID: fmt.Sprint("CPU.Socket.", k), Type: "CPU", Architecture: "x86",
			Manufacturer: "Intel", Model: "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", TotalCores: 32, TotalThreads: 64, MaxSpeedMHz: 4000})
	}
	var drives []v1alpha1.StorageDrive
	for k := range 8 {
		drives = append(drives, v1alpha1.StorageDrive{Name: fmt.Sprintf("Solid State Disk 0:1:%d", k), MediaType: "SSD", Type: "NVMe", Vendor: "SAMSUNG", Model: "MZQL23T8HCLS-00A07"})
	}
	s.Status.Storages = []v1alpha1.Storage{{Name: "PERC H755N Front", Drives: drives}}
	return s
}

// anInventory is the report of an agent on such a server.
func anInventory(i int) *policyv1alpha1.ServerInventory {
	inv := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: uuidOf(i), UID: types.UID(uuidOf(i + 2<<20)), ResourceVersion: fmt.Sprint(i + 1),
		CreationTimestamp: metav1.Now()}, Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: uuidOf(i)},
		Report: &policyv1alpha1.ProbeReport{ReceivedAt: metav1.NowMicro(), Entry: 7, Purpose: policyv1alpha1.PurposeProbe, Digest: "sha256:" + uuidOf(i)}}
	data := &inv.Report.Data
	data.Timestamp = time.Now().Format(time.RFC3339)
	for k := range int32(2) {
		cpu := policyv1alpha1.CPU{ID: k, TotalCores: 32, TotalHardwareThreads: 64, Vendor: "GenuineIntel", Model: "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz"}
		for f := range 160 { // as many as /proc/cpuinfo has
			cpu.Capabilities = append(cpu.Capabilities, fmt.Sprintf("avx512_%d", f))
		}
		data.CPU = append(data.CPU, cpu)
	}
	for k := range 16 {
		data.Memory = append(data.Memory, policyv1alpha1.MemoryDevice{SizeBytes: 32 << 30, DeviceLocator: fmt.Sprint("A", k), BankLocator: "Not Specified", MemoryType: "DDR4",
			Speed: "3200 MT/s", Vendor: "Samsung", SerialNumber: fmt.Sprint("M", i, k), PartNumber: "M393A4K40EB3-CWE", ConfiguredMemorySpeed: "3200 MT/s",
			MinimumVoltage: "1.2 V", MaximumVoltage: "1.2 V", ConfiguredVoltage: "1.2 V"})
	}
	for k := range 8 {
		data.Storage = append(data.Storage, policyv1alpha1.BlockDevice{Path: fmt.Sprintf("/dev/nvme%dn1", k), Name: fmt.Sprintf("nvme%dn1", k), Vendor: "SAMSUNG",
			Model: "MZQL23T8HCLS-00A07", Serial: fmt.Sprint("S64HN", i, k), WWID: fmt.Sprintf("eui.3634483054%06d%02d", i, k), SizeBytes: 3840755982336})
	}
	for k := range 90 {
		data.PCIDevices = append(data.PCIDevices, policyv1alpha1.PCIDevice{Address: fmt.Sprintf("0000:%02x:00.0", k), Vendor: "Intel Corporation", VendorID: "8086",
			Product: fmt.Sprintf("Ice Lake Memory Controller %d", k%20), ProductID: fmt.Sprintf("%04x", k)})
	}
	return inv
}
