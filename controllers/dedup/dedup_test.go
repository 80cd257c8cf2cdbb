// SPDX-License-Identifier: Apache-2.0

package dedup

import (
	"encoding/json"
	"fmt"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// decoded is an inventory as it comes from the API server: nothing of it is shared with another one.
func decoded(t *testing.T, serial, device string) *policyv1alpha1.ServerInventory {
	t.Helper()
	inv := &policyv1alpha1.ServerInventory{Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{
		CPU:        []policyv1alpha1.CPU{{Model: "Xeon", Capabilities: []string{"avx", "sse"}}},
		Storage:    []policyv1alpha1.BlockDevice{{Model: "MZQL", Serial: serial}},
		PCIDevices: []policyv1alpha1.PCIDevice{{Address: "0000:00:00.0", Product: device}},
	}}}
	inv.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	data, err := json.Marshal(inv)
	if err != nil {
		t.Fatal(err)
	}
	var read policyv1alpha1.ServerInventory
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	return &read
}

func TestInventoriesOfLikeMachinesShareWhatIsAlikeAndStayAsTheyAre(t *testing.T) {
	transform := Transform()
	var all []*policyv1alpha1.ServerInventory
	for _, one := range []*policyv1alpha1.ServerInventory{decoded(t, "1", "bridge"), decoded(t, "2", "bridge"), decoded(t, "3", "accelerator")} {
		want := one.DeepCopy()
		want.ManagedFields = nil
		got, err := transform(one)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		all = append(all, got.(*policyv1alpha1.ServerInventory))
	}
	a, b, c := &all[0].Report.Data, &all[1].Report.Data, &all[2].Report.Data
	for name, one := range map[string]struct{ shared, want bool }{
		"features of processors":           {&a.CPU[0].Capabilities[0] == &c.CPU[0].Capabilities[0], true},
		"devices of machines of one kind":  {&a.PCIDevices[0] == &b.PCIDevices[0], true},
		"devices of machines of two kinds": {&a.PCIDevices[0] == &c.PCIDevices[0], false},
		"the model of a disk":              {unsafe.StringData(a.Storage[0].Model) == unsafe.StringData(c.Storage[0].Model), true},
	} {
		if one.shared != one.want {
			t.Errorf("%s: shared is %t", name, one.shared)
		}
	}
}

func TestATableIsEmptiedBeforeItGrowsWithoutEnd(t *testing.T) {
	tables := newTables()
	for i := range mostKept + 2 {
		text := fmt.Sprint(i)
		tables.word(&text)
		list(tables, tables.features, []string{text})
	}
	if len(tables.words) != 2 || len(tables.features) != 2 {
		t.Errorf("%d words and %d lists are kept", len(tables.words), len(tables.features))
	}
}

func TestOtherObjectsLoseTheirManagedFieldsAlone(t *testing.T) {
	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}}}}
	got, err := Transform()(claim)
	if diff := cmp.Diff(&v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestAnInventoryLosesWhatNoReaderOfTheCacheAsksFor(t *testing.T) {
	inv := decoded(t, "1", "accelerator")
	inv.Previous = inv.Report.DeepCopy()
	inv.Report.Data.Memory = []policyv1alpha1.MemoryDevice{{SizeBytes: 1, SerialNumber: "m", DeviceLocator: "A1", BankLocator: "0"}, {SizeBytes: 2}}
	inv.Report.Data.NICs = []policyv1alpha1.NIC{{MAC: "a", Speed: "10Mb/s", LinkModes: []string{"l"}, SupportedPorts: []string{"p"}}}
	inv.Differences = []policyv1alpha1.HardwareDifference{{Part: "DIMM", Kind: policyv1alpha1.PartRemoved}}
	want := inv.DeepCopy()
	want.ManagedFields, want.Previous = nil, nil
	want.Report.Data.Memory[0].SerialNumber, want.Report.Data.NICs[0].LinkModes, want.Report.Data.NICs[0].SupportedPorts = "", nil, nil
	whole := policies.HardwareOf(inv)
	got, err := Transform()(inv)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(whole, policies.HardwareOf(got.(*policyv1alpha1.ServerInventory))); diff != "" {
		t.Errorf("the facts differ (-whole +cached):\n%s", diff)
	}
}
