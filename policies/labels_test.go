// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/selection"
)

func TestALabelSaysWhatIsKnownOfTheHardware(t *testing.T) {
	c := selection.Candidate{Manufacturer: "Dell Inc.", Model: "PowerEdge R750", CPUModel: "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz",
		CPUCount: 2, Cores: 64, MemoryGiB: 512, Disks: selection.DiskCounts{NVMe: 4}, NICMaxSpeed: 100000}
	for name, tc := range map[string]struct{ labels, want map[string]string }{
		"beside those of others": {
			map[string]string{"rack": "r1"},
			map[string]string{"rack": "r1", "inventory.metalaw.dev/manufacturer": "Dell_Inc", "inventory.metalaw.dev/model": "PowerEdge_R750",
				"inventory.metalaw.dev/cpu-model": "Intel_R_Xeon_R_Gold_6338_CPU_2.00GHz", "inventory.metalaw.dev/cpus": "2",
				"inventory.metalaw.dev/cores": "64", "inventory.metalaw.dev/memory-gib": "512", "inventory.metalaw.dev/nvme-disks": "4",
				"inventory.metalaw.dev/nic-mbits": "100000"},
		},
		"in the place of one that was set by hand, and without one that no longer holds": {
			map[string]string{"inventory.metalaw.dev/memory-gib": "9999", "inventory.metalaw.dev/gpus": "8", "inventory.metalaw.dev/color": "red"},
			map[string]string{"inventory.metalaw.dev/manufacturer": "Dell_Inc", "inventory.metalaw.dev/model": "PowerEdge_R750",
				"inventory.metalaw.dev/cpu-model": "Intel_R_Xeon_R_Gold_6338_CPU_2.00GHz", "inventory.metalaw.dev/cpus": "2",
				"inventory.metalaw.dev/cores": "64", "inventory.metalaw.dev/memory-gib": "512", "inventory.metalaw.dev/nvme-disks": "4",
				"inventory.metalaw.dev/nic-mbits": "100000"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, LabelsFor(tc.labels, c, bundle.Settings{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestNothingIsLabelledOfAMachineOfWhichNothingIsKnown(t *testing.T) {
	if got := LabelsFor(nil, selection.Candidate{}, bundle.Settings{}); got != nil {
		t.Errorf("labels %v", got)
	}
}

func FuzzLabelValue(f *testing.F) {
	for _, text := range []string{"", "Dell Inc.", "--x--", "ü", "a..b", "_._", "HPE ProLiant DL360 Gen10 Plus with a name that is longer than any label may be"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if problems := validation.IsValidLabelValue(labelValue(text)); len(problems) > 0 {
			t.Errorf("%q becomes %q: %v", text, labelValue(text), problems)
		}
	})
}

func TestTheBundleKeepsTheHardwareOutOfLabels(t *testing.T) {
	off := bundle.Settings{NoInventoryLabels: true}
	c := selection.Candidate{Manufacturer: "Dell Inc.", Cores: 64}
	labels := map[string]string{"rack": "r1", "inventory.metalaw.dev/cores": "64", "inventory.metalaw.dev/color": "red"}
	if diff := cmp.Diff(map[string]string{"rack": "r1"}, LabelsFor(labels, c, off)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := LabelsFor(nil, c, off); got != nil {
		t.Errorf("labels %v", got)
	}
}

func TestTheLabelsOfTheHardwareThatAClaimAsksAboutAreListed(t *testing.T) {
	const gpus, cores = "inventory.metalaw.dev/gpus", "inventory.metalaw.dev/cores"
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     []string
	}{
		"no selector asks about none":       {nil, nil},
		"other labels are none":             {&metav1.LabelSelector{MatchLabels: map[string]string{"rack": "r1"}}, nil},
		"each is listed once and in order":  {&metav1.LabelSelector{MatchLabels: map[string]string{gpus: "8", "rack": "r1"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: gpus, Operator: "Exists"}, {Key: cores, Operator: "In", Values: []string{"64"}}}}, []string{cores, gpus}},
		"one that must not be there counts": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: gpus, Operator: "DoesNotExist"}}}, []string{gpus}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.ServerClaim{Spec: v1alpha1.ServerClaimSpec{ServerSelector: tc.selector}}
			if diff := cmp.Diff(tc.want, AsksInventory(c)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
