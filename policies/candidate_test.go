// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
)

func TestCandidateTakesTheAgentsWordBeforeTheBMCs(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	server := &v1alpha1.Server{
		ObjectMeta: metav1.ObjectMeta{Name: "s1", Labels: map[string]string{
			v1alpha1.ZoneLabel: "z1", v1alpha1.RegionLabel: "r1", v1alpha1.InstanceTypeLabel: "big"},
			Annotations: map[string]string{RackMetadata: "rack-7"}},
		Spec: v1alpha1.ServerSpec{Taints: []v1alpha1.Taint{{Key: "slow", Value: "yes", Effect: v1alpha1.TaintEffectNoBind}}},
		Status: v1alpha1.ServerStatus{State: v1alpha1.StateAvailable, Manufacturer: "Maker", Model: "M", SKU: "K",
			TotalSystemMemory: ptr.To(resource.MustParse("64Gi")),
			Processors:        []v1alpha1.Processor{{ID: "1", Type: "CPU", TotalCores: 32}, {ID: "2", Type: "GPU"}},
			NetworkInterfaces: []v1alpha1.NetworkInterface{{Name: "a"}, {Name: "b"}, {Name: "c"}},
			Storages: []v1alpha1.Storage{{Drives: []v1alpha1.StorageDrive{
				{Name: "d1", MediaType: "SSD", Type: "NVMe", Capacity: ptr.To(resource.MustParse("1k"))},
				{Name: "d2", MediaType: "HDD", Capacity: ptr.To(resource.MustParse("2k"))},
				{Name: "d3", State: v1alpha1.StorageStateAbsent}}}},
			BIOSVersion: "2.1", Conditions: []metav1.Condition{{Type: v1alpha1.ConditionHealthy, Reason: v1alpha1.ReasonHealthWarning}},
			Lifecycle: &v1alpha1.LifecycleStatus{EnteredAt: metav1.NewMicroTime(since)},
		},
	}
	report := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{TimesClaimed: 3}, Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{
		CPU:    []policyv1alpha1.CPU{{TotalCores: 16, Model: "Gold"}, {TotalCores: 16, Model: "Silver"}},
		Memory: []policyv1alpha1.MemoryDevice{{SizeBytes: 64 << 30}, {SizeBytes: 64<<30 - 1}},
		Storage: []policyv1alpha1.BlockDevice{
			{Path: "/dev/nvme0n1", SizeBytes: 100}, {Path: "/dev/sda", SizeBytes: 20}, {Path: "/dev/sdb", Rotational: true, SizeBytes: 3},
			{Path: "/dev/sdc", Removable: true, SizeBytes: 9999}},
		NICs: []policyv1alpha1.NIC{{Speed: "1000Mb/s"}, {Speed: "25000Mb/s"}, {Speed: "-1Mb/s"}, {Speed: "fast"}},
		PCIDevices: []policyv1alpha1.PCIDevice{
			{Address: "0000:17:00.0", VendorID: "10de", Product: "GA100 [A100 SXM4 80GB]"},
			{Address: "0000:18:00.0", VendorID: "0x10DE", Product: "H100"},
			{Address: "0000:18:00.1", VendorID: "10de", Product: "H100"},
			{Address: "0000:19:00.0", VendorID: "10de", Product: "GA100 [NVSwitch]"},
			{Address: "0000:20:00.0", VendorID: "1002", Product: "Starship Internal PCIe Bridge"},
			{Address: "0000:21:00.0", VendorID: "1a03", Product: "ASPEED Graphics Family"}},
	}}}
	common := selection.Candidate{Name: "s1", Labels: server.Labels,
		Taints:       []selection.Taint{{Key: "slow", Value: "yes", Effect: "NoBind"}},
		Manufacturer: "Maker", Model: "M", SKU: "K", BIOSVersion: "2.1", Health: "Warning", Zone: "z1", Region: "r1", Rack: "rack-7",
		InstanceType: "big", AvailableSince: since.Unix()}

	reported := common
	reported.CPUCount, reported.Cores, reported.MemoryGiB, reported.DiskCount = 2, 32, 127, 3
	reported.DiskBytes = selection.DiskBytes{NVMe: 100, SSD: 20, HDD: 3, Total: 123}
	reported.Disks, reported.DiskMinBytes, reported.DiskMaxBytes = selection.DiskCounts{NVMe: 1, SSD: 1, HDD: 1}, 3, 100
	reported.NICCount, reported.NICMaxSpeed, reported.NICTotalSpeed = 4, 25000, 26000
	reported.CPUModel, reported.GPUs, reported.TimesClaimed = "Gold", 2, 3
	if diff := cmp.Diff(reported, CandidateOf(server, HardwareOf(report))); diff != "" {
		t.Errorf("with a report (-want +got):\n%s", diff)
	}
	silent := common
	silent.CPUCount, silent.Cores, silent.MemoryGiB, silent.DiskCount, silent.NICCount = 1, 32, 64, 2, 3
	silent.Disks, silent.DiskMinBytes, silent.DiskMaxBytes, silent.GPUs = selection.DiskCounts{NVMe: 1, HDD: 1}, 1000, 2000, 1
	silent.DiskBytes = selection.DiskBytes{NVMe: 1000, HDD: 2000, Total: 3000}
	if diff := cmp.Diff(silent, CandidateOf(server, HardwareOf(nil))); diff != "" {
		t.Errorf("without a report (-want +got):\n%s", diff)
	}
}

func TestServerState(t *testing.T) {
	free := func(change func(*v1alpha1.Server)) *v1alpha1.Server {
		s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s"},
			Status: v1alpha1.ServerStatus{State: v1alpha1.StateAvailable, PowerState: v1alpha1.PowerStateOff}}
		change(s)
		return s
	}
	for _, tc := range []struct {
		name   string
		server *v1alpha1.Server
		code   string
	}{
		{"a free server is eligible", free(func(*v1alpha1.Server) {}), ""},
		{"a server that is to be left alone counts as cordoned", free(func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnoreReconciliation}
		}), selection.CodeUnclaimable},
		{"so does one by a word that this version does not know", free(func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.OperationAnnotation: "ignore-for-audit"}
		}), selection.CodeUnclaimable},
		{"so does one that its BMC holds", free(func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.HeldByBMCAnnotation: "b1"}
		}), selection.CodeUnclaimable},
		{"a server that is asked to be parked is not offered", free(func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationPark}
		}), selection.CodeState},
		{"nor is one while the request is kept", free(func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.ParkRequestedAnnotation: "{}"}
		}), selection.CodeState},
		{"nor is one whose marker is written before its state", free(func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.ParkedAnnotation: "true"}
		}), selection.CodeState},
		{"one that is asked for something else is", free(func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationUnpark}
		}), ""},
		{"a server that names a maintenance is not offered", free(func(s *v1alpha1.Server) {
			s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: "disks"}
		}), selection.CodeMaintenance},
		{"the Dirty mark keeps claims away", free(func(s *v1alpha1.Server) {
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Marks: []string{MarkManaged, MarkDirty}}
		}), selection.CodeDirty},
		{"unknown power is not Off", free(func(s *v1alpha1.Server) { s.Status.PowerState = "" }), selection.CodePower},
		{"a server being deleted is not offered", free(func(s *v1alpha1.Server) { s.DeletionTimestamp = ptr.To(metav1.Now()) }), selection.CodeDeleting},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, code, _ := selection.Eligible(selection.ClaimSpec{}, ServerStateOf(tc.server)); code != tc.code {
				t.Errorf("code %q, want %q", code, tc.code)
			}
		})
	}
}

func TestClaimSpecNamesWhatIsWrongWithASelector(t *testing.T) {
	for _, tc := range []struct {
		name     string
		selector metav1.LabelSelector
		want     string
	}{
		{"an unknown operator", metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
			`spec.serverSelector: matchExpressions[0]: operator "Near" is not one of In, NotIn, Exists, DoesNotExist`},
		{"a value that no label can have", metav1.LabelSelector{MatchLabels: map[string]string{"a": "b c"}},
			`spec.serverSelector: values[0][a]: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		{"a good one", metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, ""},
		{"as many requirements as are judged", metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}, MatchExpressions: absent(63)}, ""},
		{"one requirement more", metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}, MatchExpressions: absent(64)},
			"spec.serverSelector: it has 65 requirements in matchLabels and matchExpressions, and at most 64 are judged; " +
				"give the servers that are meant one label, and select by that"},
		{"as many values as are judged", metav1.LabelSelector{MatchExpressions: outside(128, 128)}, ""},
		{"one value more", metav1.LabelSelector{MatchExpressions: outside(128, 129)},
			"spec.serverSelector: it has 257 values in matchExpressions, and at most 256 are judged; " +
				"give the servers that are meant one label, and select by that"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ClaimSpecOf(&v1alpha1.ServerClaim{Spec: v1alpha1.ServerClaimSpec{ServerSelector: &tc.selector}})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// absent are expressions of which each asks that a label is not there, and outside some that it has none of so many values.
func absent(n int) []metav1.LabelSelectorRequirement {
	all := make([]metav1.LabelSelectorRequirement, n)
	for i := range all {
		all[i] = metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", i), Operator: metav1.LabelSelectorOpDoesNotExist}
	}
	return all
}

func outside(values ...int) []metav1.LabelSelectorRequirement {
	all := make([]metav1.LabelSelectorRequirement, len(values))
	for i, n := range values {
		all[i] = metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", i), Operator: metav1.LabelSelectorOpNotIn}
		for v := range n {
			all[i].Values = append(all[i].Values, fmt.Sprint("v", v))
		}
	}
	return all
}

func TestAClaimToleratesNoMoreThanIsJudged(t *testing.T) {
	for n, want := range map[int]string{64: "", 65: "spec.tolerations: it has 65 entries, and at most 64 are judged; tolerate whole keys with the operator Exists"} {
		_, err := ClaimSpecOf(&v1alpha1.ServerClaim{Spec: v1alpha1.ServerClaimSpec{Tolerations: make([]v1alpha1.Toleration, n)}})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestPriority(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "7": 7, "-3": -3, "1000000": 1000, "-1000000": -1000, "high": 0, "99999999999999999999": 0} {
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.PriorityAnnotation: text}}}
		if got := PriorityOf(c); got != want {
			t.Errorf("priority of %q is %d, want %d", text, got, want)
		}
	}
}
