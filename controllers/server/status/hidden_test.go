// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

func TestTheConditionStorageHidden(t *testing.T) {
	b, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	hides := func(i *policyv1alpha1.ServerInventory) {
		i.Report.Data.Hidden = []policyv1alpha1.HiddenStorage{{Source: "Agent", Address: "0000:03:00.0", PCIID: "1000:0014"}}
	}
	for name, c := range map[string]struct {
		wipe   bundle.Wipe
		change func(*policyv1alpha1.ServerInventory)
		want   string
	}{
		"goes where nothing is hidden": {bundle.Wipe{}, nil, ""},
		"names a function under Report": {bundle.Wipe{Hidden: bundle.HiddenReport}, hides,
			"NotShown: No disk shows it, and it may hold data: function 0000:03:00.0 PCI 1000:0014. A wipe erases the disks and names this"},
		"says under Fail that a wipe fails": {bundle.Wipe{Hidden: bundle.HiddenFail}, hides, "A wipe and a blank check fail for it."},
		"goes where the policy excuses it":  {bundle.Wipe{Hidden: bundle.HiddenFail, Excused: []string{"1000:0014"}}, hides, ""},
		"names a BMC that lists its drives no more": {bundle.Wipe{Hidden: bundle.HiddenFail}, func(i *policyv1alpha1.ServerInventory) {
			i.BMCStorage = &policyv1alpha1.BMCStorage{State: policyv1alpha1.BMCStorageNotOffered, ListedBefore: true, Entry: 7}
		}, "DrivesNotListed: What drives the machine has is not known. The BMC listed 0 drives before"},
		"names a removable disk of which the way is not known": {bundle.Wipe{Removable: bundle.RemovableLeave}, func(i *policyv1alpha1.ServerInventory) {
			i.Report.Data.Storage = []policyv1alpha1.BlockDevice{{Path: "/dev/sda", Removable: true, Transport: "unknown"},
				{Path: "/dev/sdb", Removable: true, Transport: "usb"}}
		}, "RemovableInDoubt: How these removable disks are attached is not known: sda. "},
		"not where it would be refused": {bundle.Wipe{Removable: bundle.RemovableErase}, func(i *policyv1alpha1.ServerInventory) {
			i.Report.Data.Storage = []policyv1alpha1.BlockDevice{{Path: "/dev/sda", Removable: true, Transport: "unknown"}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Status.State = "Available"
			s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStorageHidden, Status: metav1.ConditionTrue, Reason: "Old"}}
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: metav1.NewMicroTime(noon), Revision: b.Revision.Name}
			inventory := &policyv1alpha1.ServerInventory{Report: &policyv1alpha1.ProbeReport{Entry: 7}}
			if c.change != nil {
				c.change(inventory)
			}
			settings := b.Settings
			settings.Wipe = c.wipe
			got := Decide(Input{Observation: policies.Observation{Server: s, Now: noon, Settings: settings, Inventory: inventory},
				Decision:   engine.Decision{From: "Available", To: "Available", Stable: true},
				Governance: rollout.Governance{Bundle: b}, Facts: &policies.Facts{Probe: policies.ProbeFacts{Entry: 7}}})
			text := ""
			if cond := meta.FindStatusCondition(got.Server.Status.Conditions, v1alpha1.ConditionStorageHidden); cond != nil {
				text = cond.Reason + ": " + cond.Message
			}
			if (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("got %q", text)
			}
		})
	}
}

// A setting that is promoted finds hidden storage on many servers at once: that is no fault that spreads.
func TestAMoveToErrorForHiddenStorageAloneIsNotCounted(t *testing.T) {
	b, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	for alone, to := range map[bool]string{true: "Error", false: "Error"} {
		s := &v1alpha1.Server{}
		s.Status.State = "Cleanup"
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, Revision: b.Revision.Name}
		inventory := &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 7, State: "Failed", FailedForHidden: alone}}
		out := Moved(Input{Observation: policies.Observation{Server: s, Now: noon, Settings: b.Settings, Inventory: inventory},
			Decision: engine.Decision{From: "Cleanup", To: engine.State(to), Rule: "WipeFailed"}, Governance: rollout.Governance{Bundle: b},
			Facts: &policies.Facts{}})
		if h := out.Server.Status.Lifecycle.History; len(h) != 1 || h[0].Uncounted != alone {
			t.Errorf("alone %t: %+v", alone, h)
		}
	}
}
