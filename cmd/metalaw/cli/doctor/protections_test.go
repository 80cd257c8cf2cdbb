// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// machine is a server under a revision, with what is stored of its machine.
func machine(v *view, name, revision string, change func(*policyv1alpha1.ServerInventory)) {
	s := metalv1alpha1.Server{}
	s.Name, s.Spec.SystemUUID = name, "00000000-0000-0000-0000-00000000000"+name[1:]
	s.Status.Lifecycle = &metalv1alpha1.LifecycleStatus{Revision: revision}
	v.maintenance.servers = append(v.maintenance.servers, s)
	if change == nil {
		return
	}
	i := policyv1alpha1.ServerInventory{Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{HiddenKnown: true}}}
	i.Name = s.Spec.SystemUUID
	change(&i)
	v.protections.inventories = append(v.protections.inventories, i)
}

func TestWhatDoctorSaysOfHiddenStorage(t *testing.T) {
	clean := func(*policyv1alpha1.ServerInventory) {}
	hides := func(i *policyv1alpha1.ServerInventory) {
		i.Report.Data.Hidden = []policyv1alpha1.HiddenStorage{{Source: "Agent", Address: "0000:03:00.0", PCIID: "1000:0014"}}
	}
	old := func(i *policyv1alpha1.ServerInventory) { i.Report.Data.HiddenKnown = false }
	volume := func(i *policyv1alpha1.ServerInventory) {
		i.Report.Data.Storage = []policyv1alpha1.BlockDevice{{Path: "/dev/sdq", Removable: true, Transport: "unknown"}}
	}
	stick := func(i *policyv1alpha1.ServerInventory) {
		i.Report.Data.Storage = []policyv1alpha1.BlockDevice{{Path: "/dev/sdr", Removable: true, Transport: "usb", Content: "Data"}}
	}
	excused := func(i *policyv1alpha1.ServerInventory) {
		i.Wipe = &policyv1alpha1.WipeReport{State: "Verified", Skipped: []policyv1alpha1.SkippedDisk{{Path: "/dev/sda", Excused: true}}}
	}
	now := governing{bundle.Wipe{Hidden: bundle.HiddenFail, Removable: bundle.RemovableErase, Identity: bundle.IdentityProved}, true}
	former := governing{wipe: bundle.Wipe{Hidden: bundle.HiddenReport, Removable: bundle.RemovableLeave}}
	for name, c := range map[string]struct {
		change func(*view)
		check  func(view) finding
		want   Verdict
		says   []string
	}{
		"nothing is hidden": {func(v *view) { machine(v, "s1", "now", clean) }, checkHidden, Passed, []string{"no agent and no BMC"}},
		"a server is stopped, and one is not known": {func(v *view) {
			machine(v, "s1", "now", clean)
			machine(v, "s2", "former", hides)
			machine(v, "s3", "now", old)
			machine(v, "s4", "now", nil)
		}, checkHidden, Warned, []string{"stops 1 servers: s2 (function 0000:03:00.0 PCI 1000:0014)", "not known of 2 servers", "s3, s4"}},
		"the revision of the server excuses it": {func(v *view) {
			v.protections.governs["now"] = governing{wipe: bundle.Wipe{Excused: []string{"1000:0014"}, Removable: bundle.RemovableErase}}
			machine(v, "s1", "now", hides)
		}, checkHidden, Passed, []string{"no agent"}},
		"a removable volume in doubt":                       {func(v *view) { machine(v, "s1", "former", volume) }, checkHidden, Warned, []string{"s1 (sdq)"}},
		"which is refused where removable media are erased": {func(v *view) { machine(v, "s1", "now", volume) }, checkHidden, Passed, nil},
		"it cannot be read":                                 {func(v *view) { v.protectionsErr = errors.New("denied") }, checkHidden, Unknown, []string{"denied"}},

		"each protection is asked for": {func(v *view) { machine(v, "s1", "now", hides) }, checkProtections, Passed, nil},
		"a former bundle lacks them": {func(v *view) {
			machine(v, "s1", "former", hides)
			machine(v, "s2", "former", stick)
			machine(v, "s3", "former", excused)
			machine(v, "s4", "former", old)
			machine(v, "s5", "now", hides)
		}, checkProtections, Warned, []string{
			"wipe.hidden: Fail is not asked for 4 servers, and would stop 1: s1 (not known: 1)",
			"wipe.identity: Proved is not asked for 4 servers, and would stop none (not known: 4)",
			"wipe.removable: Erase is not asked for 4 servers, and would stop 1: s2 (not known: 1)",
			"a rule for wipe.excusedOnly is not asked for 4 servers, and would stop 1: s3 (not known: 0)"}},
		"a revision does not compile": {func(v *view) { machine(v, "s1", "lost", hides) }, checkProtections, Warned,
			[]string{"not known of revisions that do not compile here: lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := view{protections: protectionState{governs: map[string]governing{"now": now, "former": former}}}
			c.change(&v)
			got := c.check(v)
			if got.Verdict != c.want || (got.Verdict == Passed) != (got.Remedy == "") {
				t.Errorf("%s: %s (%s)", got.Verdict, got.Message, got.Remedy)
			}
			for _, words := range c.says {
				if !strings.Contains(got.Message, words) {
					t.Errorf("it does not say %q: %s", words, got.Message)
				}
			}
		})
	}
}

func TestWhatTheBundlesAskOfAWipe(t *testing.T) {
	shipped, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	former, err := policies.Former()
	if err != nil {
		t.Fatal(err)
	}
	now, _ := governingOf(shipped)
	then, _ := governingOf(former["default-1.0.0-9e2d2d5d15"])
	for _, one := range protections {
		if !one.has(now) || one.has(then) {
			t.Errorf("%s: shipped %t, former %t", one.name, one.has(now), one.has(then))
		}
	}
}
