// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/drives"
)

var entered = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(entered.Add(d)) }

// inEntry is a server in entry 5.
func inEntry() *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 5, EnteredAt: at(0)}
	return s
}

func read(state policyv1alpha1.BMCStorageState, entry int64, after time.Duration) func(*policyv1alpha1.ServerInventory) {
	return func(i *policyv1alpha1.ServerInventory) {
		i.BMCStorage = &policyv1alpha1.BMCStorage{State: state, Entry: entry, ReadAt: at(after)}
	}
}

func enrolled(i *policyv1alpha1.ServerInventory) { i.Enrolment = &policyv1alpha1.Enrolment{Entry: 5} }

func wanted(after time.Duration) func(*policyv1alpha1.ServerInventory) {
	return func(i *policyv1alpha1.ServerInventory) { t := at(after); i.BMCStorageWanted = &t }
}

func TestDue(t *testing.T) {
	type changes = []func(*policyv1alpha1.ServerInventory)
	for name, c := range map[string]struct {
		inventory changes
		due       bool
		wanted    time.Duration
	}{
		"the agent was not heard":   {nil, false, 0},
		"an agent of another entry": {changes{func(i *policyv1alpha1.ServerInventory) { i.Phase = &policyv1alpha1.AgentPhase{Entry: 4} }}, false, 0},
		"its key":                   {changes{enrolled}, true, 0},
		"its phase":                 {changes{func(i *policyv1alpha1.ServerInventory) { i.Phase = &policyv1alpha1.AgentPhase{Entry: 5} }}, true, 0},
		"its report":                {changes{func(i *policyv1alpha1.ServerInventory) { i.Report = &policyv1alpha1.ProbeReport{Entry: 5} }}, true, 0},
		"its wipe":                  {changes{func(i *policyv1alpha1.ServerInventory) { i.Wipe = &policyv1alpha1.WipeReport{Entry: 5} }}, true, 0},
		"the list was read":         {changes{enrolled, read(policyv1alpha1.BMCStorageListed, 5, time.Minute)}, false, 0},
		"there is no list":          {changes{enrolled, read(policyv1alpha1.BMCStorageNotOffered, 5, time.Minute)}, false, 0},
		"there is no list any more": {changes{enrolled, read(policyv1alpha1.BMCStorageNotOffered, 5, time.Minute),
			func(i *policyv1alpha1.ServerInventory) { i.BMCStorage.ListedBefore = true }}, true, 0},
		"it could not be read":               {changes{enrolled, read(policyv1alpha1.BMCStorageUnread, 5, time.Minute)}, true, 0},
		"it was read in another entry":       {changes{enrolled, read(policyv1alpha1.BMCStorageListed, 4, time.Minute)}, true, 0},
		"in this entry of a former Server":   {changes{enrolled, read(policyv1alpha1.BMCStorageListed, 5, -time.Hour)}, true, 0},
		"a newer one is wanted":              {changes{enrolled, read(policyv1alpha1.BMCStorageListed, 5, time.Minute), wanted(time.Hour)}, true, time.Hour},
		"the newer one was read":             {changes{enrolled, read(policyv1alpha1.BMCStorageListed, 5, 2*time.Hour), wanted(time.Hour)}, false, time.Hour},
		"one was wanted in an earlier entry": {changes{enrolled, read(policyv1alpha1.BMCStorageListed, 5, time.Minute), wanted(-time.Hour)}, false, 0},
		"wanted, and the agent is not heard": {changes{wanted(time.Hour)}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			i := &policyv1alpha1.ServerInventory{}
			for _, change := range c.inventory {
				change(i)
			}
			wish, due := Due(inEntry(), i)
			if due != c.due {
				t.Errorf("due %t", due)
			}
			if want := (Wish{Entry: 5, Wanted: entered.Add(c.wanted)}); due && (wish.Entry != want.Entry || !wish.Wanted.Equal(want.Wanted)) {
				t.Errorf("got %+v, want %+v", wish, want)
			}
		})
	}
	if _, due := Due(&v1alpha1.Server{}, &policyv1alpha1.ServerInventory{}); due {
		t.Error("a server without a lifecycle is due")
	}
	if _, due := Due(inEntry(), nil); due {
		t.Error("a server without an inventory is due")
	}
}

func TestResult(t *testing.T) {
	wish := Wish{Entry: 5, Wanted: entered}
	listed := drives.List{Drives: []drives.Drive{{Name: "n", Slot: "s", Model: "m", Serial: "S1", CapacityBytes: 7, Protocol: "SAS",
		DurableNames: []string{"5002538b00aabbcc"}, BehindVolume: true, Spare: true}}}
	kept := []policyv1alpha1.BMCDrive{{Serial: "OLD"}}
	former := func(state policyv1alpha1.BMCStorageState, entry int64) *policyv1alpha1.BMCStorage {
		return &policyv1alpha1.BMCStorage{State: state, Entry: entry, ReadAt: at(time.Second), ListedBefore: true, Drives: kept, Problem: "old"}
	}
	for name, c := range map[string]struct {
		former *policyv1alpha1.BMCStorage
		answer Answer
		state  policyv1alpha1.BMCStorageState
		write  bool
		before bool
		serial string
		words  string
	}{
		"the first list":                         {nil, Answer{List: listed}, policyv1alpha1.BMCStorageListed, true, true, "S1", ""},
		"a list in another entry":                {former(policyv1alpha1.BMCStorageListed, 4), Answer{List: listed}, policyv1alpha1.BMCStorageListed, true, true, "S1", ""},
		"a list again that was not wanted":       {former(policyv1alpha1.BMCStorageListed, 5), Answer{List: listed}, policyv1alpha1.BMCStorageListed, false, true, "S1", ""},
		"a list after one that was not read":     {former(policyv1alpha1.BMCStorageUnread, 5), Answer{List: listed}, policyv1alpha1.BMCStorageListed, true, true, "S1", ""},
		"a list with drives that do not count":   {nil, Answer{List: drives.List{Drives: listed.Drives, Left: "Bay 3: Disabled"}}, policyv1alpha1.BMCStorageListed, true, true, "S1", "Bay 3"},
		"no list, and there never was one":       {nil, Answer{}, policyv1alpha1.BMCStorageNotOffered, true, false, "", ""},
		"no list where there was one":            {former(policyv1alpha1.BMCStorageListed, 4), Answer{}, policyv1alpha1.BMCStorageNotOffered, true, true, "OLD", ""},
		"a list after none":                      {former(policyv1alpha1.BMCStorageNotOffered, 5), Answer{List: listed}, policyv1alpha1.BMCStorageListed, true, true, "S1", ""},
		"no list again":                          {former(policyv1alpha1.BMCStorageNotOffered, 5), Answer{}, policyv1alpha1.BMCStorageNotOffered, false, true, "OLD", ""},
		"no drive that counts":                   {nil, Answer{List: drives.List{Left: "Bay 3: Disabled"}}, policyv1alpha1.BMCStorageNotOffered, true, false, "", "Bay 3"},
		"an error":                               {nil, Answer{Err: errors.New("503")}, policyv1alpha1.BMCStorageUnread, true, false, "", "503"},
		"an error where there was a list":        {former(policyv1alpha1.BMCStorageListed, 4), Answer{Err: errors.New("503")}, policyv1alpha1.BMCStorageUnread, true, true, "OLD", "503"},
		"an error after an error":                {former(policyv1alpha1.BMCStorageUnread, 5), Answer{Err: errors.New("503")}, policyv1alpha1.BMCStorageUnread, false, true, "OLD", "503"},
		"an error after an error of another one": {former(policyv1alpha1.BMCStorageUnread, 4), Answer{Err: errors.New("503")}, policyv1alpha1.BMCStorageUnread, true, true, "OLD", "503"},
		"a long error in another script":         {nil, Answer{Err: errors.New(strings.Repeat("\u4e16", 2000))}, policyv1alpha1.BMCStorageUnread, true, false, "", "\u4e16"},
	} {
		t.Run(name, func(t *testing.T) {
			c.answer.At = entered.Add(time.Minute)
			next, write := Result(c.former, wish, c.answer)
			if next.State != c.state || write != c.write || next.ListedBefore != c.before || next.Entry != 5 || !next.ReadAt.Equal(new(at(time.Minute))) {
				t.Errorf("write %t, %+v", write, next)
			}
			serial := ""
			if len(next.Drives) > 0 {
				serial = next.Drives[0].Serial
			}
			if serial != c.serial {
				t.Errorf("drives %+v", next.Drives)
			}
			if !strings.Contains(next.Problem, c.words) || (c.words == "") != (next.Problem == "") || len(next.Problem) > 1024 || !utf8.ValidString(next.Problem) {
				t.Errorf("problem %q", next.Problem)
			}
		})
	}
	next, _ := Result(nil, wish, Answer{List: listed, At: entered})
	want := policyv1alpha1.BMCDrive{Name: "n", Slot: "s", Model: "m", Serial: "S1", CapacityBytes: 7, Protocol: "SAS",
		DurableNames: []string{"5002538b00aabbcc"}, BehindVolume: true, Spare: true}
	if d := next.Drives[0]; d.Name != want.Name || d.Slot != want.Slot || d.Model != want.Model || d.CapacityBytes != 7 || d.Protocol != "SAS" ||
		len(d.DurableNames) != 1 || !d.BehindVolume || !d.Spare {
		t.Errorf("got %+v", d)
	}
}

func TestAReadingAnswersTheWishOfAClockThatIsAhead(t *testing.T) {
	wish := Wish{Entry: 5, Wanted: entered.Add(time.Hour)}
	next, write := Result(&policyv1alpha1.BMCStorage{State: policyv1alpha1.BMCStorageListed, Entry: 5, ReadAt: at(0)}, wish, Answer{At: entered})
	if !write || next.ReadAt.Time.Before(wish.Wanted) {
		t.Errorf("write %t, %+v", write, next)
	}
	if _, write := Result(next, wish, Answer{At: entered}); write {
		t.Error("the same answer is written again")
	}
}
