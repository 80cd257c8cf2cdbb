// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

type disk = policyv1alpha1.CustodyDisk

// storage is the data of a report with disks, each as "name wwid serial", where "-" is none.
func storage(disks ...string) string {
	var list []string
	for _, d := range disks {
		w := strings.Fields(d)
		for i := range w {
			w[i] = strings.TrimPrefix(w[i], "-")
		}
		list = append(list, fmt.Sprintf(`{"path":"/dev/%s","name":"%s","wwid":"%s","serial":"%s","sizeBytes":7}`, w[0], w[0], w[1], w[2]))
	}
	return `{"cpu":[{"id":0}],"storage":[` + strings.Join(list, ",") + `]}`
}

// custodyOf is an inventory whose machine had these disks, and holds data.
func custodyOf(disks ...disk) *policyv1alpha1.ServerInventory {
	i := emptyInventory()
	i.Custody = &policyv1alpha1.Custody{
		Marks: []string{"Dirty"}, ServerName: "srv", Disks: disks,
		LastHolder: &policyv1alpha1.Holder{Namespace: "a", Name: "b"},
	}
	return i
}

func (f *fleet) remembered() []disk {
	f.t.Helper()
	stored := f.inventory(uuid)
	if stored == nil || stored.Custody == nil {
		return nil
	}
	disks := slices.Clone(stored.Custody.Disks)
	for i := range disks {
		disks[i].Entry = 0 // strangers_test.go judges it
	}
	return disks
}

func TestFixedDisksAreRemembered(t *testing.T) {
	held := func(s *metalv1alpha1.Server, _ *Options) {
		s.Spec.ServerClaimRef = &metalv1alpha1.ObjectReference{Namespace: "a", Name: "b"}
	}
	open := func(_ *metalv1alpha1.Server, o *Options) {
		o.AllowUnauthenticated = func(*metalv1alpha1.Server) (bool, error) { return true, nil }
	}
	clean := func(disks ...disk) *policyv1alpha1.ServerInventory {
		i := custodyOf(disks...)
		i.Custody.Marks = nil
		return i
	}
	old := disk{Name: "old", WWID: "O"}
	a := disk{Name: "sda", WWID: "A", SizeBytes: 7}
	b := disk{Name: "sdb", Serial: "B", SizeBytes: 7}
	c := disk{Name: "sdc", SizeBytes: 7}
	for name, tc := range map[string]struct {
		fleet  func(*metalv1alpha1.Server, *Options)
		before *policyv1alpha1.ServerInventory
		token  string
		data   []string
		want   []disk
	}{
		"by a probe, with what identifies them": {data: []string{storage("sda A -", "sdb - B", "sdc - -")}, want: []disk{a, b, c}},
		"but no removable and no read-only ones": {data: []string{
			`{"storage":[{"path":"/dev/sda","removable":true},{"path":"/dev/sdb","readOnly":true}]}`}},
		"but none that is attached over a network": {data: []string{`{"storage":[{"path":"/dev/sdx","transport":"iscsi"},{"path":"/dev/sdy","transport":"fc"},
			{"path":"/dev/nvme0n1","transport":"nvme/tcp"},{"path":"/dev/nvme1n1","transport":"nvme/rdma+tcp"},{"path":"/dev/sda","wwid":"A","sizeBytes":7,"transport":"sata"}]}`}, want: []disk{{Name: "sda", WWID: "A", SizeBytes: 7, Transport: "sata"}}},
		"where it may be local all the same": {data: []string{`{"storage":[{"path":"/dev/sda","wwid":"A","sizeBytes":7,"transport":"nvme/pcie+tcp"},
			{"path":"/dev/sdb","serial":"B","sizeBytes":7,"transport":"unknown"},{"path":"/dev/sdc","sizeBytes":7,"transport":"nvme/unknown"}]}`}, want: []disk{
			{Name: "sda", WWID: "A", SizeBytes: 7, Transport: "nvme/pcie+tcp"}, {Name: "sdb", Serial: "B", SizeBytes: 7, Transport: "unknown"},
			{Name: "sdc", SizeBytes: 7, Transport: "nvme/unknown"}}},
		"by their path where an agent gives no name":      {data: []string{`{"storage":[{"path":"/dev/sdc","sizeBytes":7}]}`}, want: []disk{c}},
		"once for two paths to one wwid":                  {data: []string{storage("sda A -", "sdz A -")}, want: []disk{a}},
		"each, though two share a serial number":          {data: []string{storage("sdb - B", "sdb - B")}, want: []disk{b, b}},
		"in place of those of a former probe":             {before: clean(old), data: []string{storage("sda A -")}, want: []disk{a}},
		"in addition while the machine holds data":        {before: custodyOf(old), data: []string{storage("sda A -")}, want: []disk{old, a}},
		"in addition while a claim holds the server":      {fleet: held, before: clean(old), data: []string{storage("sda A -")}, want: []disk{old, a}},
		"in addition by a wipe, which proves no absence":  {fleet: asWipe, before: clean(old), data: []string{storage("sda A -")}, want: []disk{old, a}},
		"also when a later report of the boot lacks them": {data: []string{storage("sda A -", "sdb - B"), storage("sda A -")}, want: []disk{a, b}},
		"also when a report has no storage at all":        {before: clean(old), data: []string{least}, want: []disk{old}},
		"never by an agent without a token":               {fleet: open, token: "-", before: clean(old), data: []string{storage("sda A -")}, want: []disk{old}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.before != nil {
				objects = append(objects, tc.before.DeepCopy())
			}
			f := newFleet(t, tc.fleet, objects...)
			token := tc.token
			if token == "" {
				token = "mine"
			}
			for _, data := range tc.data {
				if got := f.do("POST", "/register", token, report(uuid, data)); got.Code != http.StatusCreated {
					t.Fatalf("got %d %s", got.Code, got.Body)
				}
			}
			if diff := cmp.Diff(tc.want, f.remembered()); diff != "" {
				t.Errorf("disks (-want +got):\n%s", diff)
			}
			if tc.before != nil {
				got := f.inventory(uuid).Custody.DeepCopy()
				got.Disks = tc.before.Custody.Disks
				if diff := cmp.Diff(tc.before.Custody, got); diff != "" {
					t.Errorf("the rest of the custody (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestAMarkThatAppearsMeanwhileKeepsTheDisks(t *testing.T) {
	before := custodyOf(disk{Name: "old", WWID: "O"})
	before.Custody.Marks = nil
	f := newFleet(t, nil, before)
	f.interfere(func(c client.Client) error {
		stored, err := inventory(t.Context(), c, uuid)
		if err != nil {
			return err
		}
		stored.Custody.Marks = []string{"Dirty"}
		return c.Update(t.Context(), stored)
	})
	f.do("POST", "/register", "mine", report(uuid, storage("sda A -")))
	if got := f.inventory(uuid).Custody; len(got.Disks) != 2 || len(got.Marks) != 1 {
		t.Errorf("custody %+v", got)
	}
}

func TestAWipeMustCoverTheDisksOfBefore(t *testing.T) {
	for name, c := range map[string]struct {
		before []disk
		seen   []string
		state  string
		names  string
	}{
		"and it does, whatever they are called now": {
			[]disk{{Name: "sdb", WWID: "A"}, {Name: "sda", Serial: "B"}}, []string{"sda A -", "sdb Y B"}, "Verified", ""},
		"and it does, known by name only":     {[]disk{{Name: "sda"}}, []string{"sda A B"}, "Verified", ""},
		"not one that this boot does not see": {[]disk{{Name: "sda", WWID: "A"}, {Name: "sdb", WWID: "B"}}, []string{"sda A -"}, "Failed", "sdb (wwid B)"},
		"not one with another's name":         {[]disk{{Name: "sda", WWID: "A"}}, []string{"sda Z -"}, "Failed", "sda (wwid A)"},
		"not a wwid by its serial number":     {[]disk{{Name: "sda", WWID: "A", Serial: "S"}}, []string{"sda - S"}, "Failed", "sda (wwid A, serial S)"},
		"each of two with the same serial":    {[]disk{{Name: "sda", Serial: "S"}, {Name: "sdb", Serial: "S"}}, []string{"sda - S"}, "Failed", "sdb (serial S)"},
		"each of two with a serial of zeros":  {[]disk{{Name: "sda", Serial: "0"}, {Name: "sdb", Serial: "0"}}, []string{"sda - 0"}, "Failed", "seen: sdb. "},
		"each of two with one wwid": {
			[]disk{{Name: "sda", WWID: "A", Serial: "S1", Transport: "sata"}, {Name: "sdb", WWID: "A", Serial: "S2", Transport: "sata"}},
			[]string{"sda A S1"}, "Failed", "sdb (wwid A, serial S2)"},
		"and it does, with one wwid for two": {
			[]disk{{Name: "sda", WWID: "A", Serial: "S1", Transport: "sata"}, {Name: "sdb", WWID: "A", Serial: "S2", Transport: "sata"}},
			[]string{"sdb A S1", "sda A S2"}, "Verified", ""},
		"each, and one by serial and one by name are two": {[]disk{{Serial: "S"}, {Name: "sda"}}, []string{"sda - S"}, "Failed", "seen: sda. "},
		"all, where this boot sees none":                  {[]disk{{Name: "sda", WWID: "A"}}, nil, "Failed", "sda (wwid A)"},
		"one that has no identity whatsoever":             {[]disk{{SizeBytes: 7}}, []string{"sda A B"}, "Failed", "unnamed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, asWipe, custodyOf(c.before...))
			data := storage(c.seen...)
			f.do("POST", "/register", "mine", report(uuid, data))
			disks := strings.TrimSuffix(strings.TrimPrefix(data, `{"cpu":[{"id":0}],"storage":`), `}`)
			disks = strings.ReplaceAll(disks, `"sizeBytes"`, `"state":"Verified","sizeBytes"`)
			got := f.do("POST", "/wipe", "mine", `{"systemUUID":"`+uuid+`","state":"Verified","disks":`+disks+`}`)
			if got.Code != http.StatusOK {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			wipe := f.inventory(uuid).Wipe
			if string(wipe.State) != c.state || !strings.Contains(wipe.Message, c.names) || (c.state == "Verified") != (wipe.Message == "") {
				t.Errorf("wipe %s: %q", wipe.State, wipe.Message)
			}
		})
	}
}

func diskless(s *metalv1alpha1.Server, _ *Options) {
	s.Annotations[metalv1alpha1.DisklessAnnotation] = "true"
}

func TestAWipeThatSawNoDisk(t *testing.T) {
	shows := func(states ...metalv1alpha1.StorageState) func(*metalv1alpha1.Server, *Options) {
		return func(s *metalv1alpha1.Server, _ *Options) {
			storage := metalv1alpha1.Storage{Name: "1"}
			for _, state := range states {
				storage.Drives = append(storage.Drives, metalv1alpha1.StorageDrive{State: state})
			}
			s.Status.Storages = append(s.Status.Storages, storage)
		}
	}
	both := func(all ...func(*metalv1alpha1.Server, *Options)) func(*metalv1alpha1.Server, *Options) {
		return func(s *metalv1alpha1.Server, o *Options) {
			for _, change := range all {
				change(s, o)
			}
		}
	}
	as := func(value string) func(*metalv1alpha1.Server, *Options) {
		return func(s *metalv1alpha1.Server, _ *Options) { s.Annotations[metalv1alpha1.DisklessAnnotation] = value }
	}
	const removable = `{"storage":[{"path":"/dev/sda","removable":true}]}`
	for name, c := range map[string]struct {
		change func(*metalv1alpha1.Server, *Options)
		before []disk
		data   string
		state  policyv1alpha1.WipeState
		says   string
	}{
		"has failed": {as(""), nil, least, "Failed", "no disk was seen; "},
		"has failed where only a removable one is":   {as(""), nil, removable, "Failed", "no disk was seen; "},
		"has failed where the BMC shows one":         {both(as(""), shows("Enabled", "Absent", "Disabled")), nil, least, "Failed", "no disk was seen, though the BMC shows 2"},
		"is a wipe of a machine that has none":       {diskless, nil, least, "Verified", ""},
		"is so with an empty slot":                   {both(diskless, shows("Absent")), nil, removable, "Verified", ""},
		"has failed where that word is not true":     {as("yes"), nil, least, "Failed", "no disk was seen; "},
		"has failed where the BMC says otherwise":    {both(diskless, shows("Enabled")), nil, least, "Failed", "though the BMC shows 1"},
		"has failed where a disk is remembered":      {diskless, []disk{{Name: "sda", WWID: "A"}}, least, "Failed", "sda (wwid A)"},
		"has failed where the same boot reports one": {diskless, nil, storage("sda A -"), "Failed", "sda (wwid A)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, both(asWipe, c.change), custodyOf(c.before...))
			f.do("POST", "/register", "mine", report(uuid, c.data))
			for range 2 { // an agent repeats what it is not sure to have said
				if got := f.do("POST", "/wipe", "mine", `{"systemUUID":"`+uuid+`","state":"Verified"}`); got.Code != http.StatusOK {
					t.Fatalf("got %d %s", got.Code, got.Body)
				}
			}
			if got := f.inventory(uuid).Wipe; got.State != c.state || !strings.Contains(got.Message, c.says) || (c.says == "") != (got.Message == "") {
				t.Errorf("the wipe is %s: %q", got.State, got.Message)
			}
		})
	}
}

func TestAWipeBootThatSeesLessTheSecondTimeHasFailed(t *testing.T) {
	f := newFleet(t, asWipe)
	f.do("POST", "/register", "mine", report(uuid, storage("sda A -", "sdb B -")))
	f.do("POST", "/register", "mine", report(uuid, storage("sda A -")))
	f.do("POST", "/wipe", "mine", `{"systemUUID":"`+uuid+`","state":"Verified","disks":[{"path":"/dev/sda","wwid":"A","state":"Verified"}]}`)
	if got := f.inventory(uuid).Wipe; got.State != "Failed" || !strings.Contains(got.Message, "sdb (wwid B)") {
		t.Errorf("wipe %+v", got)
	}
}

func TestTheMessageOfAFailedWipeFitsTheAPI(t *testing.T) {
	var left []disk
	for range 256 {
		left = append(left, disk{Name: strings.Repeat("ü", 256), WWID: strings.Repeat("ü", 256)})
	}
	if got := utf8.RuneCountInString(notCovered(left)); got > 1024 {
		t.Errorf("%d characters", got)
	}
}
