// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

// booted is a server in entry 4 whose agent was booted, seen on for the first time that long ago.
func booted(purpose string, on time.Duration) Observation {
	s := held()
	at := metav1.NewMicroTime(noon.Add(-on))
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 4, SeenOnAt: &at, EnteredAt: metav1.NewMicroTime(noon.Add(-time.Hour))}
	o := Observation{Server: s, Now: noon, Counted: time.Hour, Inventory: &policyv1alpha1.ServerInventory{}}
	o.Settings.Boot.FirstWord = 20 * time.Minute
	if purpose != "" {
		o.Boot = &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.BootPurposeAnnotation: purpose}}}
	}
	return o
}

func TestAnAgentThatIsNotHeardInItsTime(t *testing.T) {
	inventory := func(change func(*policyv1alpha1.ServerInventory)) func(*Observation) {
		return func(o *Observation) { change(o.Inventory) }
	}
	for name, c := range map[string]struct {
		purpose string
		on      time.Duration
		change  func(*Observation)
		want    bool
	}{
		"a probe is waited for":                 {"Probe", 19 * time.Minute, nil, false},
		"a probe that says nothing in its time": {"Probe", 20 * time.Minute, nil, true},
		"a wipe that says nothing in its time":  {"Wipe", 20 * time.Minute, nil, true},
		"what a claim boots owes no word":       {"Claim", time.Hour, nil, false},
		"nothing was booted":                    {"", time.Hour, nil, false},
		"a model takes longer":                  {"Probe", 25 * time.Minute, func(o *Observation) { o.Settings.Boot.FirstWord = 30 * time.Minute }, false},
		"it was not seen on":                    {"Probe", time.Hour, func(o *Observation) { o.Server.Status.Lifecycle.SeenOnAt = nil }, false},
		"its phase was heard":                   {"Probe", time.Hour, inventory(func(i *policyv1alpha1.ServerInventory) { i.Phase = &policyv1alpha1.AgentPhase{Entry: 4} }), false},
		"a phase of a former entry":             {"Probe", time.Hour, inventory(func(i *policyv1alpha1.ServerInventory) { i.Phase = &policyv1alpha1.AgentPhase{Entry: 3} }), true},
		"its key was seen":                      {"Wipe", time.Hour, inventory(func(i *policyv1alpha1.ServerInventory) { i.Enrolment = &policyv1alpha1.Enrolment{Entry: 4} }), false},
		"its report came":                       {"Probe", time.Hour, inventory(func(i *policyv1alpha1.ServerInventory) { i.Report = &policyv1alpha1.ProbeReport{Entry: 4} }), false},
		"a report without a token may be anyone's": {"Probe", time.Hour, inventory(func(i *policyv1alpha1.ServerInventory) {
			i.Report = &policyv1alpha1.ProbeReport{Entry: 4, Unauthenticated: true}
		}), true},
		"its wipe was heard of": {"Wipe", time.Hour, inventory(func(i *policyv1alpha1.ServerInventory) {
			i.Wipe = &policyv1alpha1.WipeReport{Entry: 4, UpdatedAt: metav1.NewMicroTime(noon.Add(-time.Hour))}
		}), false},
		"it was switched on again a moment ago": {"Probe", time.Hour, func(o *Observation) {
			o.Server.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, Entry: 4, AskedAt: metav1.NewMicroTime(noon.Add(-time.Minute))}
		}, false},
		"it stays unheard once it is powered off": {"Probe", time.Hour, func(o *Observation) {
			o.Server.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionForceOff, Entry: 4, AskedAt: metav1.NewMicroTime(noon)}
			o.System = SystemReading{Reachable: true, Power: "Off", Identity: IdentitySame}
		}, true},
		"the manager was away meanwhile": {"Probe", 25 * time.Minute, func(o *Observation) { o.Counted = 45 * time.Minute }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := booted(c.purpose, c.on)
			if c.change != nil {
				c.change(&o)
			}
			if got := o.Facts().Boot.Unheard; got != c.want {
				t.Errorf("unheard is %t", got)
			}
		})
	}
}

func TestWithWhichDisksAMachineIsNotOffered(t *testing.T) {
	blank := policyv1alpha1.BlockDevice{Path: "/dev/a", WWID: "a", Content: policyv1alpha1.ContentBlank}
	data := policyv1alpha1.BlockDevice{Path: "/dev/b", WWID: "b", Content: policyv1alpha1.ContentData, ContentFound: "ext4"}
	as := func(d policyv1alpha1.BlockDevice, change func(*policyv1alpha1.BlockDevice)) policyv1alpha1.BlockDevice {
		change(&d)
		return d
	}
	wiped := func(o *Observation) {
		o.Inventory.Custody = &policyv1alpha1.Custody{}
		o.Inventory.Wipe = &policyv1alpha1.WipeReport{Entry: 2, State: policyv1alpha1.WipeVerified,
			Disks: []policyv1alpha1.DiskWipe{{WWID: "b", State: policyv1alpha1.DiskVerified}}}
	}
	accepts := func(words ...string) func(*Observation) {
		return func(o *Observation) { o.Settings.OfferAccepts = words }
	}
	for name, c := range map[string]struct {
		disks  []policyv1alpha1.BlockDevice
		change func(*Observation)
		want   []string
	}{
		"blank disks":                     {[]policyv1alpha1.BlockDevice{blank}, nil, nil},
		"no disks":                        {nil, nil, nil},
		"a disk with data":                {[]policyv1alpha1.BlockDevice{blank, data}, nil, []string{"/dev/b (ext4)"}},
		"a disk that cannot be read":      {[]policyv1alpha1.BlockDevice{as(blank, func(d *policyv1alpha1.BlockDevice) { d.Content = policyv1alpha1.ContentUnreadable })}, nil, []string{"/dev/a (unreadable)"}},
		"a disk that no agent read":       {[]policyv1alpha1.BlockDevice{as(blank, func(d *policyv1alpha1.BlockDevice) { d.Content = "" })}, nil, []string{"/dev/a (not read)"}},
		"the policy takes unread disks":   {[]policyv1alpha1.BlockDevice{as(blank, func(d *policyv1alpha1.BlockDevice) { d.Content = "" })}, accepts(bundle.AcceptUnread), nil},
		"the policy takes any disk":       {[]policyv1alpha1.BlockDevice{data}, accepts(bundle.AcceptData), nil},
		"the policy takes no blank disk":  {[]policyv1alpha1.BlockDevice{blank}, accepts(bundle.AcceptWiped), []string{"/dev/a (data)"}},
		"a stick is no disk of its own":   {[]policyv1alpha1.BlockDevice{as(data, func(d *policyv1alpha1.BlockDevice) { d.Removable = true })}, nil, nil},
		"a volume is another system's":    {[]policyv1alpha1.BlockDevice{as(data, func(d *policyv1alpha1.BlockDevice) { d.Transport = "nvme/tcp" })}, nil, nil},
		"a disk that is wiped since":      {[]policyv1alpha1.BlockDevice{data}, wiped, nil},
		"a disk that came after the wipe": {[]policyv1alpha1.BlockDevice{as(data, func(d *policyv1alpha1.BlockDevice) { d.WWID = "c" })}, wiped, []string{"/dev/b (ext4)"}},
		"a claim came after the wipe": {[]policyv1alpha1.BlockDevice{data}, func(o *Observation) {
			wiped(o)
			o.Inventory.Custody.LastHolder = &policyv1alpha1.Holder{Namespace: "shop", Name: "web"}
		}, []string{"/dev/b (ext4)"}},
		"a disk that the policy leaves alone": {[]policyv1alpha1.BlockDevice{data}, func(o *Observation) { o.Settings.Wipe.Excused = []string{"b"} }, nil},
		"a report of another entry":           {[]policyv1alpha1.BlockDevice{data}, func(o *Observation) { o.Inventory.Report.Entry = 3 }, nil},
		"a report without a token":            {[]policyv1alpha1.BlockDevice{data}, func(o *Observation) { o.Inventory.Report.Unauthenticated = true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := booted("Probe", time.Minute)
			o.Inventory.Report = &policyv1alpha1.ProbeReport{Entry: 4, Data: policyv1alpha1.ProbeData{Storage: c.disks}}
			if c.change != nil {
				c.change(&o)
			}
			if got := DataWords(DataOn(o)); !slices.Equal(got, c.want) || o.Facts().Probe.DataFound != (len(c.want) > 0) {
				t.Errorf("it finds %q, and the fact says %t", got, o.Facts().Probe.DataFound)
			}
		})
	}
}

func TestADifferenceOfTheHardwareIsAFact(t *testing.T) {
	kinds := func(kinds ...policyv1alpha1.DifferenceKind) *policyv1alpha1.ServerInventory {
		inv := &policyv1alpha1.ServerInventory{}
		for _, k := range kinds {
			inv.Differences = append(inv.Differences, policyv1alpha1.HardwareDifference{Part: "DIMM", Kind: k})
		}
		return inv
	}
	for name, c := range map[string]struct {
		inventory *policyv1alpha1.ServerInventory
		want      InventoryFacts
	}{
		"nothing is known":          {nil, InventoryFacts{}},
		"nothing changed":           {kinds(), InventoryFacts{}},
		"a DIMM came":               {kinds(policyv1alpha1.PartAdded), InventoryFacts{Changed: true}},
		"a DIMM vanished":           {kinds(policyv1alpha1.PartRemoved), InventoryFacts{Changed: true, Lost: true}},
		"one came and one vanished": {kinds(policyv1alpha1.PartAdded, policyv1alpha1.PartRemoved), InventoryFacts{Changed: true, Lost: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Observation{Server: held(), Now: noon, Inventory: c.inventory}).Facts().Inventory; got != c.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}
