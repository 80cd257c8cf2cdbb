// SPDX-License-Identifier: Apache-2.0

package drives

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func listed(drives ...policyv1alpha1.BMCDrive) *policyv1alpha1.BMCStorage {
	return &policyv1alpha1.BMCStorage{State: policyv1alpha1.BMCStorageListed, ListedBefore: true, Drives: drives}
}

func of(serial string, names ...string) policyv1alpha1.BMCDrive {
	return policyv1alpha1.BMCDrive{Name: serial, Serial: serial, DurableNames: names}
}

func behind(serial string, spare bool) policyv1alpha1.BMCDrive {
	return policyv1alpha1.BMCDrive{Name: serial, Serial: serial, BehindVolume: true, Spare: spare}
}

func TestUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		storage *policyv1alpha1.BMCStorage
		seen    []Seen
		hidden  []string
		covered []string
	}{
		"nothing was read":               {nil, nil, nil, nil},
		"a drive of which the agent saw": {listed(of("S6CKNN0W502286")), []Seen{{Serial: "S6CKNN0W502286"}}, nil, nil},
		"a drive that it did not see":    {listed(of("A1234567"), of("B1234567")), []Seen{{Serial: "A1234567"}}, []string{"B1234567"}, nil},
		"as many disks as drives, and other ones": {listed(of("A1234567"), of("B1234567")),
			[]Seen{{Serial: "A1234567"}, {Serial: "USB-STICK"}}, []string{"B1234567"}, nil},
		"more disks than drives":                           {listed(of("A1234567")), []Seen{{Serial: "X"}, {Serial: "A1234567"}, {Serial: "Y"}}, nil, nil},
		"case and blanks":                                  {listed(of(" phab1234 ")), []Seen{{Serial: "PHAB1234\n"}}, nil, nil},
		"the disk's serial number begins with the drive's": {listed(of("ZC1ABCDE")), []Seen{{Serial: "ZC1ABCDE0000C931"}}, nil, nil},
		"the drive's begins with the disk's":               {listed(of("ZC1ABCDE0000C931")), []Seen{{Serial: "ZC1ABCDE"}}, nil, nil},
		"seven characters stand for no longer number":      {listed(of("ZC1ABCD")), []Seen{{Serial: "ZC1ABCD0000"}}, []string{"ZC1ABCD"}, nil},
		"seven characters that are equal":                  {listed(of("ZC1ABCD")), []Seen{{Serial: "ZC1ABCD"}}, nil, nil},
		"a serial number that ends alike":                  {listed(of("00ZC1ABCDE")), []Seen{{Serial: "ZC1ABCDE"}}, []string{"00ZC1ABCDE"}, nil},
		"an empty serial number of a disk":                 {listed(of("ZC1ABCDE")), []Seen{{Name: "sda"}}, []string{"ZC1ABCDE"}, nil},
		"a kernel name is no identity":                     {listed(of("nvme0n1x")), []Seen{{Name: "nvme0n1x"}}, []string{"nvme0n1x"}, nil},
		"by the durable name": {listed(of("A1234567", "5002538b00aabbcc")),
			[]Seen{{Serial: "other", WWID: "naa.5002538B00AABBCC"}}, nil, nil},
		"by the durable name of NVMe": {listed(of("A1234567", "00-25-38-b1-11-40-0a-bb")), []Seen{{WWID: "eui.002538b111400abb"}}, nil, nil},
		"zeros name nothing": {listed(of("A1234567", "0000000000000000")),
			[]Seen{{WWID: "eui.0000000000000000"}}, []string{"A1234567"}, nil},
		"a placeholder is no serial number": {listed(of("A1234567")), []Seen{{Serial: "N/A"}}, []string{"A1234567"}, nil},
		"one disk shows one drive":          {listed(of("ABCDEFGH1"), of("ABCDEFGH2")), []Seen{{Serial: "ABCDEFGH"}}, []string{"ABCDEFGH2"}, nil},
		"the disk that only one drive can have is left to it": {listed(of("ABCDEFGH"), of("ABCDEFGH2")),
			[]Seen{{Serial: "ABCDEFGH2"}, {Serial: "ABCDEFGH"}}, nil, nil},
		"two namespaces of one drive":      {listed(of("A1234567")), []Seen{{Serial: "A1234567"}, {Serial: "A1234567"}}, nil, nil},
		"one drive that two adapters list": {listed(of("A1234567"), of("A1234567")), []Seen{{Serial: "A1234567"}}, nil, nil},
		"two drives of one serial number and two names": {listed(of("A1234567", "5002538b00aabbcc"), of("A1234567", "5002538b00aabbcd")),
			[]Seen{{Serial: "A1234567"}}, []string{"A1234567"}, nil},
		"a drive behind a volume":      {listed(behind("A1234567", false)), []Seen{{Serial: "volume"}}, nil, []string{"A1234567"}},
		"a spare":                      {listed(behind("A1234567", true)), nil, nil, []string{"A1234567 (spare)"}},
		"a passed-through drive":       {listed(behind("A1234567", true)), []Seen{{Serial: "A1234567"}}, nil, nil},
		"a spare of no volume adapter": {listed(policyv1alpha1.BMCDrive{Serial: "A1234567", Spare: true}), nil, []string{"A1234567"}, nil},
		"a reading that failed says nothing of the drives before": {&policyv1alpha1.BMCStorage{State: policyv1alpha1.BMCStorageUnread,
			Drives: []policyv1alpha1.BMCDrive{of("A1234567")}}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			hidden, covered := Unseen(c.storage, c.seen)
			if got := serials(hidden); !slices.Equal(got, c.hidden) {
				t.Errorf("hidden %v, want %v", got, c.hidden)
			}
			if got := serials(covered); !slices.Equal(got, c.covered) {
				t.Errorf("covered %v, want %v", got, c.covered)
			}
		})
	}
}

func serials(all []policyv1alpha1.HiddenStorage) []string {
	var out []string
	for _, h := range all {
		text := h.Serial
		if strings.Contains(h.Reason, "spare") {
			text += " (spare)"
		}
		out = append(out, text)
	}
	return out
}

func TestAHiddenDriveIsNamed(t *testing.T) {
	d := policyv1alpha1.BMCDrive{Name: "PCIe SSD", Slot: "Bay 1", Model: "CM6", Serial: "61X0A002TCD8", CapacityBytes: 1920383410176, Protocol: "PCIe"}
	hidden, _ := Unseen(listed(d), nil)
	want := policyv1alpha1.HiddenStorage{Source: policyv1alpha1.HiddenByBMC, Name: "PCIe SSD", Slot: "Bay 1", Model: "CM6", Serial: "61X0A002TCD8",
		SizeBytes: 1920383410176, Reason: reasonHidden}
	if len(hidden) != 1 || hidden[0] != want {
		t.Errorf("got %+v, want %+v", hidden, want)
	}
}

func TestFreshAndSettled(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(1000, 0))
	later, earlier := metav1.NewMicroTime(at.Add(time.Second)), metav1.NewMicroTime(at.Add(-time.Second))
	read := func(state policyv1alpha1.BMCStorageState, entry int64) *policyv1alpha1.BMCStorage {
		return &policyv1alpha1.BMCStorage{State: state, ReadAt: at, Entry: entry}
	}
	for name, c := range map[string]struct {
		storage        *policyv1alpha1.BMCStorage
		wanted         *metav1.MicroTime
		fresh, settled bool
	}{
		"nothing was read":                      {nil, nil, false, false},
		"the drives of another entry":           {read(policyv1alpha1.BMCStorageListed, 4), nil, false, false},
		"the drives of this entry":              {read(policyv1alpha1.BMCStorageListed, 5), nil, true, true},
		"no list":                               {read(policyv1alpha1.BMCStorageNotOffered, 5), nil, true, true},
		"a list that could not be read":         {read(policyv1alpha1.BMCStorageUnread, 5), nil, true, false},
		"a reading before it was wanted":        {read(policyv1alpha1.BMCStorageListed, 5), &later, false, false},
		"a reading at the time when it was":     {read(policyv1alpha1.BMCStorageListed, 5), &at, true, true},
		"a reading after it was wanted":         {read(policyv1alpha1.BMCStorageListed, 5), &earlier, true, true},
		"a failed reading after it was wanted":  {read(policyv1alpha1.BMCStorageUnread, 5), &earlier, true, false},
		"a failed reading before it was wanted": {read(policyv1alpha1.BMCStorageUnread, 5), &later, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Fresh(c.storage, 5, c.wanted); got != c.fresh {
				t.Errorf("fresh %t", got)
			}
			if got := Settled(c.storage, 5, c.wanted); got != c.settled {
				t.Errorf("settled %t", got)
			}
		})
	}
}

func TestWithheld(t *testing.T) {
	for name, c := range map[string]struct {
		state  policyv1alpha1.BMCStorageState
		before bool
		want   string
	}{
		"it lists its drives":            {policyv1alpha1.BMCStorageListed, true, ""},
		"it never listed any":            {policyv1alpha1.BMCStorageNotOffered, false, ""},
		"it could never be asked":        {policyv1alpha1.BMCStorageUnread, false, ""},
		"it listed drives and does not":  {policyv1alpha1.BMCStorageNotOffered, true, "lists none now"},
		"it listed drives and now fails": {policyv1alpha1.BMCStorageUnread, true, "could not be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Withheld(&policyv1alpha1.BMCStorage{State: c.state, ListedBefore: c.before, Problem: strings.Repeat("x", 1020)})
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || len(got) > 1024 {
				t.Errorf("got %q", got)
			}
		})
	}
}

func FuzzUnseen(f *testing.F) {
	f.Add("A1234567,B1234567", "a1234567x,")
	f.Add("\xff\xfe,  ", "0,00000000")
	f.Fuzz(func(t *testing.T, drives, disks string) {
		var storage policyv1alpha1.BMCStorage
		storage.State = policyv1alpha1.BMCStorageListed
		for i, s := range strings.SplitN(drives, ",", 40) {
			storage.Drives = append(storage.Drives, of(fmt.Sprint(s), s, fmt.Sprint("naa.", s)))
			storage.Drives[i].BehindVolume = i%3 == 0
		}
		var seen []Seen
		for _, s := range strings.SplitN(disks, ",", 40) {
			seen = append(seen, Seen{Serial: s, WWID: "eui." + s})
		}
		hidden, covered := Unseen(&storage, seen)
		if left := len(hidden) + len(covered); left > len(storage.Drives) || left < len(distinct(storage.Drives))-len(seen) {
			t.Errorf("%d drives of %d are unseen with %d disks", left, len(storage.Drives), len(seen))
		}
	})
}
