// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func TestStorageThatNoDiskShowsFailsTheBlankCheck(t *testing.T) {
	const words = "function 0000:03:00.0 PCI 1000:0014 (no disk shows it)"
	data := policyv1alpha1.BlockDevice{Path: "/dev/b", WWID: "b", Content: policyv1alpha1.ContentData, ContentFound: "ext4"}
	for name, c := range map[string]struct {
		change func(*Observation)
		want   []string
		alone  bool
	}{
		"under Fail":                      {nil, []string{words}, true},
		"not under Report":                {func(o *Observation) { o.Settings.Wipe.Hidden = bundle.HiddenReport }, nil, false},
		"not where the policy excuses it": {func(o *Observation) { o.Settings.Wipe.Excused = []string{"1000:0014"} }, nil, false},
		"not where a person answers for it": {func(o *Observation) {
			o.Inventory.Custody = &policyv1alpha1.Custody{AttestedHidden: []policyv1alpha1.AttestedHidden{
				{Address: "0000:03:00.0", PCIID: "1000:0014", By: "jane"}}}
		}, nil, false},
		"not of another entry":       {func(o *Observation) { o.Inventory.Report.Entry = 3 }, nil, false},
		"not without a token":        {func(o *Observation) { o.Inventory.Report.Unauthenticated = true }, nil, false},
		"beside a disk with data":    {func(o *Observation) { o.Inventory.Report.Data.Storage = []policyv1alpha1.BlockDevice{data} }, []string{"/dev/b (ext4)", words}, false},
		"whatever disks are offered": {func(o *Observation) { o.Settings.OfferAccepts = []string{bundle.AcceptData} }, []string{words}, true},
		"and a wipe that failed for it alone": {func(o *Observation) {
			o.Inventory.Wipe = &policyv1alpha1.WipeReport{Entry: 4, State: policyv1alpha1.WipeFailed, FailedForHidden: true}
		}, []string{words}, true},
		"and a wipe that failed for a disk": {func(o *Observation) {
			o.Inventory.Wipe = &policyv1alpha1.WipeReport{Entry: 4, State: policyv1alpha1.WipeFailed}
		}, []string{words}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := booted("Probe", time.Minute)
			o.Settings.Wipe.Hidden = bundle.HiddenFail
			o.Inventory.Report = &policyv1alpha1.ProbeReport{Entry: 4, Data: policyv1alpha1.ProbeData{HiddenKnown: true,
				Hidden: []policyv1alpha1.HiddenStorage{{Source: "Agent", Address: "0000:03:00.0", PCIID: "1000:0014"}}}}
			if c.change != nil {
				c.change(&o)
			}
			if got := FoundWords(o); !slices.Equal(got, c.want) || o.Facts().Probe.DataFound != (len(c.want) > 0) || HiddenAlone(o) != c.alone {
				t.Errorf("it finds %q, the fact says %t, alone %t", got, o.Facts().Probe.DataFound, HiddenAlone(o))
			}
		})
	}
}

func TestARemovableMediumWithDataIsFoundWhereItIsErased(t *testing.T) {
	stick := policyv1alpha1.BlockDevice{Path: "/dev/b", Serial: "b", Removable: true, Content: policyv1alpha1.ContentData, ContentFound: "vfat"}
	blank, unread, disc := stick, stick, stick
	blank.Content, unread.Content, disc.ReadOnly = policyv1alpha1.ContentBlank, "", true
	for name, c := range map[string]struct {
		setting string
		disk    policyv1alpha1.BlockDevice
		want    []string
	}{
		"under Erase":                           {bundle.RemovableErase, stick, []string{"/dev/b (vfat)"}},
		"not under Leave":                       {bundle.RemovableLeave, stick, nil},
		"not a blank one":                       {bundle.RemovableErase, blank, nil},
		"not one of the BMC, which is not read": {bundle.RemovableErase, unread, nil},
		"not one that is read-only":             {bundle.RemovableErase, disc, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := booted("Probe", time.Minute)
			o.Settings.Wipe.Removable = c.setting
			o.Inventory.Report = &policyv1alpha1.ProbeReport{Entry: 4, Data: policyv1alpha1.ProbeData{Storage: []policyv1alpha1.BlockDevice{c.disk}}}
			if got := FoundWords(o); !slices.Equal(got, c.want) {
				t.Errorf("it finds %q", got)
			}
		})
	}
}

func TestABlankCheckIsCompleteOnceTheBMCWasAsked(t *testing.T) {
	for name, c := range map[string]struct {
		setting string
		bmc     bool
		age     time.Duration
		want    bool
	}{
		"under Fail it waits":            {bundle.HiddenFail, true, time.Minute, false},
		"for two minutes":                {bundle.HiddenFail, true, 2 * time.Minute, true},
		"not under Report":               {bundle.HiddenReport, true, time.Minute, true},
		"not for a server without a BMC": {bundle.HiddenFail, false, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := booted("Probe", time.Minute)
			o.Settings.Wipe.Hidden = c.setting
			if o.Server.Spec.BMCRef, o.Server.Spec.BMC = nil, nil; c.bmc {
				o.Server.Spec.BMCRef = &corev1.LocalObjectReference{Name: "bmc"}
			}
			o.Inventory.Report = &policyv1alpha1.ProbeReport{Entry: 4}
			o.Inventory.BMCStorageWanted = &metav1.MicroTime{Time: noon.Add(-c.age)}
			if got := o.Facts().Probe.Complete; got != c.want {
				t.Errorf("complete is %t", got)
			}
		})
	}
}
