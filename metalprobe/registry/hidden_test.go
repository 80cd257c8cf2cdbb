// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// demanding is a server in a wipe, under a policy that asks for that.
func demanding(asks Demands) func(*metalv1alpha1.Server, *Options) {
	return func(s *metalv1alpha1.Server, o *Options) {
		asWipe(s, o)
		o.Demands = func(*metalv1alpha1.Server) (Demands, error) { return asks, nil }
	}
}

// withBMC is the same server with a BMC.
func withBMC(asks Demands) func(*metalv1alpha1.Server, *Options) {
	return func(s *metalv1alpha1.Server, o *Options) {
		demanding(asks)(s, o)
		s.Spec.BMCRef = &corev1.LocalObjectReference{Name: "bmc"}
	}
}

// end is the end of a wipe that erased disk sda (wwid A), with more of its JSON.
func end(more string) string {
	return `{"systemUUID":"` + uuid + `","state":"Verified","hiddenKnown":true,"disks":[{"path":"/dev/sda","name":"sda","wwid":"A","state":"Verified"}]` + more + `}`
}

const function = `,"hidden":[{"source":"Agent","address":"0000:03:00.0","pciID":"1000:0014","slot":"4","serial":"S1234567","reason":"no driver"}]`

func TestStorageThatNoDiskShows(t *testing.T) {
	attested := func(a policyv1alpha1.AttestedHidden) *policyv1alpha1.ServerInventory {
		i := custodyOf()
		a.Method, a.By, a.Reason = policyv1alpha1.AttestRemoved, "jane", "empty"
		i.Custody.AttestedHidden = []policyv1alpha1.AttestedHidden{a}
		return i
	}
	for name, c := range map[string]struct {
		asks      Demands
		before    *policyv1alpha1.ServerInventory
		end       string
		state     policyv1alpha1.WipeState
		says      string
		excusedBy string
		alone     bool
	}{
		"is named and fails nothing where the policy says Report": {Demands{}, nil, end(function), "Verified", "", "", false},
		"fails the wipe where the policy says Fail": {Demands{FailHidden: true}, nil, end(function), "Failed",
			"function 0000:03:00.0 PCI 1000:0014 slot 4 serial S1234567", "", true},
		"fails none that the policy excuses by its function": {Demands{FailHidden: true, Excused: []string{"1000:0014"}}, nil, end(function),
			"Verified", "", "policy", false},
		"fails none that the policy excuses by its slot": {Demands{FailHidden: true, Excused: []string{"4"}}, nil, end(function),
			"Verified", "", "policy", false},
		"fails none that the policy excuses by its serial number": {Demands{FailHidden: true, Excused: []string{"s1234567"}}, nil, end(function),
			"Verified", "", "policy", false},
		"fails a wipe that an excuse for another part does not save": {Demands{FailHidden: true, Excused: []string{"1000:0015", ""}}, nil,
			end(function), "Failed", "0000:03:00.0", "", true},
		"fails none for which a person answers": {Demands{FailHidden: true}, attested(policyv1alpha1.AttestedHidden{Serial: "S1234567"}),
			end(function), "Verified", "", "jane", false},
		"fails a wipe where a person answers for another part": {Demands{FailHidden: true},
			attested(policyv1alpha1.AttestedHidden{Serial: "S7654321", Address: "0000:03:00.0"}), end(function), "Failed", "0000:03:00.0", "", true},
		"is excused by no agent": {Demands{FailHidden: true}, nil,
			strings.ReplaceAll(end(function), `"reason":"no driver"`, `"reason":"no driver","excusedBy":"policy"`), "", "", "", false},
		"does not hide that a disk was left out": {Demands{FailHidden: true}, custodyOf(disk{Name: "sdz", WWID: "Z9"}), end(function),
			"Failed", "sdz (wwid Z9)", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.before != nil {
				objects = append(objects, c.before)
			}
			f := newFleet(t, demanding(c.asks), objects...)
			f.do("POST", "/register", "mine", report(uuid, storage("sda A -")))
			got := f.do("POST", "/wipe", "mine", c.end)
			if c.state == "" {
				if got.Code != http.StatusUnprocessableEntity {
					t.Errorf("got %d %s", got.Code, got.Body)
				}
				return
			}
			if again := f.do("POST", "/wipe", "mine", c.end); got.Code != http.StatusOK || again.Code != http.StatusOK {
				t.Fatalf("got %d %s, then %d %s", got.Code, got.Body, again.Code, again.Body)
			}
			wipe, records := f.inventory(uuid).Wipe, f.records()
			if wipe.State != c.state || !strings.Contains(wipe.Message, c.says) || wipe.FailedForHidden != c.alone {
				t.Errorf("the wipe is %s, alone %t: %q", wipe.State, wipe.FailedForHidden, wipe.Message)
			}
			want := []policyv1alpha1.HiddenStorage{{Source: "Agent", Address: "0000:03:00.0", PCIID: "1000:0014", Slot: "4", Serial: "S1234567",
				Reason: "no driver", ExcusedBy: c.excusedBy}}
			if len(records) != 1 || !records[0].Spec.HiddenKnown || cmp.Diff(want, records[0].Spec.Hidden) != "" {
				t.Errorf("recorded %+v", records)
			}
		})
	}
}

func TestTheEndOfAWipeWaitsForTheDrivesThatTheBMCLists(t *testing.T) {
	listed := func(state policyv1alpha1.BMCStorageState, drives ...policyv1alpha1.BMCDrive) policyv1alpha1.BMCStorage {
		return policyv1alpha1.BMCStorage{State: state, Entry: 7, Drives: drives, ListedBefore: len(drives) > 0, Problem: "timeout"}
	}
	seen := policyv1alpha1.BMCDrive{Name: "Disk 1", Serial: "SDA12345"}
	other := policyv1alpha1.BMCDrive{Name: "Disk 2", Slot: "Bay 2", Serial: "OTHER123"}
	spare := policyv1alpha1.BMCDrive{Name: "Disk 3", Serial: "SPARE123", BehindVolume: true, Spare: true}
	fail := Demands{FailHidden: true}
	for name, c := range map[string]struct {
		asks    Demands
		reading policyv1alpha1.BMCStorage
		// age is how old the reading is when the end comes again after some time.
		age, after time.Duration
		state      policyv1alpha1.WipeState
		says       string
		known      policyv1alpha1.BMCStorageState
		hidden     int
		covered    int
	}{
		"and it lists what was erased":                     {fail, listed("Listed", seen), 0, 5 * time.Second, "Verified", "", "Listed", 0, 0},
		"and it lists one more":                            {fail, listed("Listed", seen, other), 0, 5 * time.Second, "Failed", "Disk 2 slot Bay 2 serial OTHER123", "Listed", 1, 0},
		"and one more is named where the policy reports":   {Demands{}, listed("Listed", seen, other), 0, 5 * time.Second, "Verified", "", "Listed", 1, 0},
		"and one behind a volume fails nothing":            {fail, listed("Listed", seen, spare), 0, 5 * time.Second, "Verified", "", "Listed", 0, 1},
		"and it has no list":                               {fail, listed("NotOffered"), 0, 5 * time.Second, "Verified", "", "NotOffered", 0, 0},
		"and a reading from before does not count":         {fail, listed("Listed", seen), time.Minute, 5 * time.Second, "Running", "", "", 0, 0},
		"and a part unread is asked again":                 {Demands{}, listed("Unread"), 0, 5 * time.Second, "Running", "", "", 0, 0},
		"and after two minutes it is not known":            {fail, listed("Unread"), 0, 2 * time.Minute, "Verified", "", "Unread", 0, 0},
		"and one that listed drives before must list them": {fail, listed("Unread", seen), 0, 2 * time.Minute, "Running", "", "", 0, 0},
		"and one that lists none any more fails it":        {fail, listed("NotOffered", seen), 0, 20 * time.Minute, "Failed", "listed 1 drives before", "Unread", 0, 0},
		"and that is no failure where the policy reports":  {Demands{}, listed("Unread", seen), 0, 2 * time.Minute, "Verified", "", "Unread", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, withBMC(c.asks))
			f.do("POST", "/register", "mine", report(uuid, storage("sda A SDA12345")))
			first := f.do("POST", "/wipe", "mine", end(""))
			if first.Code != http.StatusServiceUnavailable || first.Header().Get("Retry-After") == "" || len(f.records()) != 0 {
				t.Fatalf("first %d %s", first.Code, first.Body)
			}
			if event := f.heard(); event != "" {
				t.Errorf("event %q", event)
			}
			i := f.inventory(uuid)
			if i.BMCStorageWanted == nil || !i.BMCStorageWanted.Time.Equal(start) || i.Wipe.State != "Running" {
				t.Fatalf("wanted %v, wipe %+v", i.BMCStorageWanted, i.Wipe)
			}
			i.BMCStorage = &c.reading
			i.BMCStorage.ReadAt = metav1.NewMicroTime(start.Add(time.Second - c.age))
			if err := f.client.Update(t.Context(), i); err != nil {
				t.Fatal(err)
			}
			f.now = start.Add(c.after)
			f.do("POST", "/wipe", "mine", end(""))
			i = f.inventory(uuid)
			if w := i.Wipe; w.State != c.state || !strings.Contains(w.Message, c.says) || w.BMCStorage != c.known || len(w.Hidden) != c.hidden ||
				len(w.UnseenDrives) != c.covered {
				t.Errorf("the wipe is %+v", w)
			}
			if !i.BMCStorageWanted.Time.Equal(start) {
				t.Errorf("asked again at %s", i.BMCStorageWanted)
			}
			if records := f.records(); len(records) > 0 && (records[0].Spec.BMCStorage != c.known || len(records[0].Spec.UnseenDrives) != c.covered) {
				t.Errorf("recorded %+v", records[0].Spec)
			}
		})
	}
}

// The agent waits for the BMC as it waits for a record: it comes again, and is taken for alive.
func TestAWipeThatWaitsForTheBMCIsNotSilent(t *testing.T) {
	f := newFleet(t, withBMC(Demands{FailHidden: true}))
	f.do("POST", "/register", "mine", report(uuid, storage("sda A SDA12345")))
	for range 12 {
		f.do("POST", "/wipe", "mine", end(""))
		if w := f.inventory(uuid).Wipe; w.State != "Running" || !w.UpdatedAt.Time.Equal(f.now) {
			t.Fatalf("at %s: %+v", f.now, w)
		}
		f.now = f.now.Add(10 * time.Second)
	}
	if got := f.do("POST", "/wipe", "mine", end("")); got.Code != http.StatusOK || f.inventory(uuid).Wipe.BMCStorage != "Unread" {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func TestAWipeOfExcusedDisksOnlyIsMarked(t *testing.T) {
	const excused = `"skipped":[{"path":"/dev/sda","wwid":"A","excused":true}]}`
	begin := `{"systemUUID":"` + uuid + `","state":"Verified",`
	for name, c := range map[string]struct {
		change func(*metalv1alpha1.Server, *Options)
		data   string
		end    string
		want   bool
	}{
		"each was excused": {nil, storage("sda A -"), begin + excused, true},
		"one was erased": {nil, storage("sda A -", "sdb B -"),
			begin + `"disks":[{"path":"/dev/sdb","wwid":"B","state":"Verified"}],` + excused, false},
		"none was seen":                     {diskless, least, begin + `"skipped":[{"path":"/dev/sr0"}]}`, false},
		"one was left that is no fixed one": {nil, storage("sda A -"), begin + `"skipped":[{"path":"/dev/sr0"},{"path":"/dev/sda","wwid":"A","excused":true}]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
				asWipe(s, o)
				if c.change != nil {
					c.change(s, o)
				}
			})
			f.do("POST", "/register", "mine", report(uuid, c.data))
			f.do("POST", "/wipe", "mine", c.end)
			records := f.records()
			if w := f.inventory(uuid).Wipe; w.State != "Verified" || w.ExcusedOnly != c.want || len(records) != 1 || records[0].Spec.ExcusedOnly != c.want {
				t.Errorf("wipe %+v, records %+v", w, records)
			}
		})
	}
}

const stick = `{"storage":[{"path":"/dev/sda","name":"sda","wwid":"A","sizeBytes":7},
	{"path":"/dev/sdb","name":"sdb","serial":"STICK","sizeBytes":7,"removable":true,"transport":"usb","content":"Data"},
	{"path":"/dev/sdc","name":"sdc","sizeBytes":7,"removable":true,"transport":"usb"},
	{"path":"/dev/sr0","name":"sr0","sizeBytes":7,"removable":true,"readOnly":true}]}`

func TestRemovableMedia(t *testing.T) {
	probe := func(asks Demands, err error) func(*metalv1alpha1.Server, *Options) {
		return func(_ *metalv1alpha1.Server, o *Options) {
			o.Demands = func(*metalv1alpha1.Server) (Demands, error) { return asks, err }
		}
	}
	fixed := disk{Name: "sda", WWID: "A", SizeBytes: 7}
	medium := disk{Name: "sdb", Serial: "STICK", SizeBytes: 7, Transport: "usb", Removable: true}
	for name, c := range map[string]struct {
		change func(*metalv1alpha1.Server, *Options)
		code   int
		want   []disk
	}{
		"are not remembered under Leave":                       {probe(Demands{}, nil), http.StatusCreated, []disk{fixed}},
		"are remembered under Erase, but for those of the BMC": {probe(Demands{EraseRemovable: true}, nil), http.StatusCreated, []disk{fixed, medium}},
		"are reported again while the policy cannot be asked":  {probe(Demands{}, errors.New("down")), http.StatusServiceUnavailable, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, c.change)
			if got := f.do("POST", "/register", "mine", report(uuid, stick)); got.Code != c.code {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			if diff := cmp.Diff(c.want, f.remembered()); diff != "" {
				t.Errorf("remembered (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("that are remembered must be erased under Erase alone", func(t *testing.T) {
		for asks, want := range map[bool]policyv1alpha1.WipeState{true: "Failed", false: "Verified"} {
			f := newFleet(t, demanding(Demands{EraseRemovable: asks}), custodyOf(fixed, medium))
			f.do("POST", "/register", "mine", report(uuid, storage("sda A -")))
			f.do("POST", "/wipe", "mine", end(""))
			if w := f.inventory(uuid).Wipe; w.State != want || asks && !strings.Contains(w.Message, "sdb (serial STICK)") {
				t.Errorf("erase %t: %s %q", asks, w.State, w.Message)
			}
		}
	})
	t.Run("that a former agent leaves fail the wipe under Erase", func(t *testing.T) {
		for asks, want := range map[bool]policyv1alpha1.WipeState{true: "Failed", false: "Verified"} {
			f := newFleet(t, demanding(Demands{EraseRemovable: asks}))
			f.do("POST", "/register", "mine", report(uuid, strings.ReplaceAll(stick, `,"content":"Data"`, "")))
			f.do("POST", "/wipe", "mine", strings.ReplaceAll(end(""), `"hiddenKnown":true,`, ""))
			if w := f.inventory(uuid).Wipe; w.State != want || asks && !strings.Contains(w.Message, "sdb (serial STICK)") {
				t.Errorf("erase %t: %s %q", asks, w.State, w.Message)
			}
		}
	})
}

func TestTheEndOfAWipeComesAgainWhileThePolicyCannotBeAsked(t *testing.T) {
	f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
		asWipe(s, o)
		o.Demands = func(*metalv1alpha1.Server) (Demands, error) { return Demands{}, errors.New("not loaded") }
	})
	f.do("POST", "/register", "mine", report(uuid, storage("sda A -")))
	got := f.do("POST", "/wipe", "mine", end(""))
	if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" || f.inventory(uuid).Wipe != nil {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func TestABlankCheckAsksForTheDrivesOfTheBMCOnceAfterItsReport(t *testing.T) {
	for fails, want := range map[bool]bool{true: true, false: false} {
		f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
			s.Spec.BMCRef = &corev1.LocalObjectReference{Name: "bmc"}
			o.Demands = func(*metalv1alpha1.Server) (Demands, error) { return Demands{FailHidden: fails}, nil }
		})
		f.do("POST", "/register", "mine", report(uuid, storage("sda A -")))
		f.now = start.Add(time.Hour)
		f.do("POST", "/register", "mine", report(uuid, storage("sda A -")))
		if at := f.inventory(uuid).BMCStorageWanted; (at != nil) != want || want && !at.Time.Equal(start) {
			t.Errorf("fails %t: wanted at %v", fails, at)
		}
	}
}
