// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/redfish/drives"
	"github.com/metalaw/metalaw/redfish/emulator"
)

const (
	storageURI = systemURI + "/Storage"
	adapterURI = storageURI + "/A"
)

func driveJSON(n int, more string) string {
	return fmt.Sprintf(`{"@odata.id":"%s/Drives/%d","Name":"Bay %d","SerialNumber":"SERIAL-%04d","CapacityBytes":1000,"Protocol":"NVMe","Status":{"State":"Enabled"}%s}`,
		adapterURI, n, n, n, more)
}

// withDrives is a fake BMC with one adapter of so many drives.
func withDrives(t *testing.T, n int) *fakeBMC {
	f := newFake(t)
	f.set(systemURI, systemJSON("On", `,"Storage":{"@odata.id":"`+storageURI+`"}`))
	f.set(storageURI, `{"@odata.id":"`+storageURI+`","Members":[{"@odata.id":"`+adapterURI+`"}]}`)
	var links []string
	for i := range n {
		uri := fmt.Sprintf("%s/Drives/%d", adapterURI, i)
		links = append(links, `{"@odata.id":"`+uri+`"}`)
		f.set(uri, driveJSON(i, ""))
	}
	f.set(adapterURI, `{"@odata.id":"`+adapterURI+`","Id":"A","Drives":[`+strings.Join(links, ",")+`],"Volumes":{"@odata.id":"`+adapterURI+`/Volumes"}}`)
	f.set(adapterURI+"/Volumes", `{"Members":[]}`)
	return f
}

func listDrives(t *testing.T, b BMC, want Identity) (drives.List, error) {
	t.Helper()
	return b.(DriveReader).Drives(t.Context(), systemURI, want)
}

func driveSerials(l drives.List) []string {
	var all []string
	for _, d := range l.Drives {
		all = append(all, d.Serial)
	}
	return all
}

func TestTheDrivesOfASystemAreRead(t *testing.T) {
	f := withDrives(t, 3)
	got, err := listDrives(t, f.client(t), self)
	if err != nil || !slices.Equal(driveSerials(got), []string{"SERIAL-0000", "SERIAL-0001", "SERIAL-0002"}) || got.Left != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAnotherSystemsDrivesAreNotRead(t *testing.T) {
	f := withDrives(t, 1)
	if got, err := listDrives(t, f.client(t), Identity{UUID: "00000000-0000-4000-8000-000000000001"}); !is[*IdentityError](err) || len(got.Drives) > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, line := range f.seen("GET") {
		if strings.Contains(line, "/Storage") {
			t.Errorf("asked %s", line)
		}
	}
}

func TestABMCWithoutAListOfDrives(t *testing.T) {
	for name, change := range map[string]func(*fakeBMC){
		"no storage":                  func(f *fakeBMC) { f.set(systemURI, systemJSON("On")) },
		"a storage that is not there": func(f *fakeBMC) { f.on("GET "+storageURI, status(404)) },
		"an empty list":               func(f *fakeBMC) { f.set(storageURI, `{"@odata.id":"/s","Members":[]}`) },
		"a collection without a list": func(f *fakeBMC) {
			f.set(storageURI, `{"@odata.id":"/s","@odata.type":"#StorageCollection.StorageCollection"}`)
		},
		"an adapter without drives":      func(f *fakeBMC) { f.set(adapterURI, `{"@odata.id":"/a","Drives":[]}`) },
		"an adapter without their field": func(f *fakeBMC) { f.set(adapterURI, `{"@odata.id":"/a","Id":"A"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			f := withDrives(t, 2)
			change(f)
			if got, err := listDrives(t, f.client(t), self); err != nil || len(got.Drives) != 0 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAPartThatCannotBeReadFailsTheWholeList(t *testing.T) {
	for name, change := range map[string]func(*fakeBMC){
		"the collection fails":            func(f *fakeBMC) { f.on("GET "+storageURI, status(500)) },
		"the collection is no list":       func(f *fakeBMC) { f.set(storageURI, `{"@odata.id":"/s","Members":null}`) },
		"the collection is an empty body": func(f *fakeBMC) { f.set(storageURI, `{}`) },
		"a member without a reference":    func(f *fakeBMC) { f.set(storageURI, `{"Members":[{}]}`) },
		"an adapter fails":                func(f *fakeBMC) { f.on("GET "+adapterURI, status(500)) },
		"an adapter is not there":         func(f *fakeBMC) { f.on("GET "+adapterURI, status(404)) },
		"a drive fails":                   func(f *fakeBMC) { f.on("GET "+adapterURI+"/Drives/1", status(500)) },
		"a drive is not there":            func(f *fakeBMC) { f.on("GET "+adapterURI+"/Drives/1", status(404)) },
		"a drive is forbidden":            func(f *fakeBMC) { f.on("GET "+adapterURI+"/Drives/1", status(403)) },
		"a drive's body is HTML":          func(f *fakeBMC) { f.on("GET "+adapterURI+"/Drives/1", body("<html>")) },
		"the drives are a word":           func(f *fakeBMC) { f.set(adapterURI, `{"@odata.id":"/a","Drives":"two"}`) },
		"the drives are an empty object":  func(f *fakeBMC) { f.set(adapterURI, `{"@odata.id":"/a","Drives":{}}`) },
		"a drive without a reference":     func(f *fakeBMC) { f.set(adapterURI, `{"@odata.id":"/a","Drives":[{"Name":"x"}]}`) },
		"the volumes fail":                func(f *fakeBMC) { f.on("GET "+adapterURI+"/Volumes", status(500)) },
		"a volume fails": func(f *fakeBMC) {
			f.set(adapterURI+"/Volumes", `{"Members":[{"@odata.id":"/v1"}]}`)
			f.on("GET /v1", status(500))
		},
		"a link to another host": func(f *fakeBMC) {
			f.set(adapterURI, `{"@odata.id":"/a","Drives":[{"@odata.id":"https://192.0.2.1/d"}]}`)
		},
		"more drives than are kept": func(f *fakeBMC) {
			f.set(adapterURI, `{"@odata.id":"/a","Drives":[`+strings.Repeat(`{"@odata.id":"/d"},`, drives.MaxDrives)+`{"@odata.id":"/d"}]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := withDrives(t, 2)
			change(f)
			if got, err := listDrives(t, f.client(t), self); err == nil || len(got.Drives) != 0 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestABusyBMCIsAskedOnceMoreForADrive(t *testing.T) {
	f := withDrives(t, 2)
	f.once("GET "+adapterURI+"/Drives/1", status(http.StatusInternalServerError))
	if got, err := listDrives(t, f.client(t), self); err != nil || len(got.Drives) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDrivesMayBeACollectionOrStandInTheList(t *testing.T) {
	for name, listed := range map[string]string{
		"a collection": `{"@odata.id":"` + adapterURI + `/Drives"}`,
		"whole drives": `[` + driveJSON(0, "") + `,` + driveJSON(1, "") + `]`,
	} {
		t.Run(name, func(t *testing.T) {
			f := withDrives(t, 2)
			f.set(adapterURI+"/Drives", `{"Members":[{"@odata.id":"`+adapterURI+`/Drives/0"},{"@odata.id":"`+adapterURI+`/Drives/1"}]}`)
			f.set(adapterURI, `{"@odata.id":"`+adapterURI+`","Drives":`+listed+`}`)
			if got, err := listDrives(t, f.client(t), self); err != nil || len(got.Drives) != 2 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestDrivesBehindAVolume(t *testing.T) {
	f := withDrives(t, 3)
	f.set(adapterURI+"/Volumes", `{"Members":[{"@odata.id":"/v1"}]}`)
	f.set("/v1", `{"@odata.id":"/v1","RAIDType":"RAID1","Links":{"Drives":[{"@odata.id":"`+adapterURI+`/Drives/0"},{"@odata.id":"`+adapterURI+`/Drives/1/"}]}}`)
	got, err := listDrives(t, f.client(t), self)
	if err != nil || len(got.Drives) != 3 {
		t.Fatalf("got %+v, %v", got, err)
	}
	for i, d := range got.Drives {
		if !d.BehindVolume || d.Spare != (i == 2) {
			t.Errorf("drive %d: %+v", i, d)
		}
	}
}

// treeListed is how many drives of each captured tree count, for its first host; a tree with -1 has no list.
var treeListed = map[string]int{
	"cray-ex235n": -1, "dell-r750-idrac9": 3, "hpe-dl325-ilo5": -1, "lenovo-sr670-xcc1": 2, "lenovo-sr670v2-xcc": 4,
	"nvidia-dgx-h100": -1, "nvidia-gb200": 9, "openbmc-stock": -1, "supermicro-821ge": 8,
}

func TestRealTreesListTheirDrives(t *testing.T) {
	folder := os.Getenv(treesVariable)
	if folder == "" {
		t.Skipf("set %s to a folder with captured Redfish trees (*.tar.gz) to run this test", treesVariable)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s=%s holds no *.tar.gz (%v)", treesVariable, folder, err)
	}
	tried := maps.Clone(treeListed)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".tar.gz")
		delete(tried, name)
		t.Run(name, func(t *testing.T) {
			tree, err := emulator.ReadTree(file)
			if err != nil {
				t.Fatal(err)
			}
			m, bmc, _ := emulated(t, emulator.MachineSpec{Tree: tree, Power: emulator.PowerOff})
			shown, err := bmc.System(t.Context(), m.SystemURI())
			if err != nil {
				t.Fatal(err)
			}
			got, err := bmc.(DriveReader).Drives(t.Context(), m.SystemURI(), shown.Identity)
			want, known := treeListed[name]
			if !known {
				t.Fatalf("treeListed lacks it: %+v, %v", got, err)
			}
			if shown.Identity.UUID == "" && shown.Identity.SerialNumber == "" { // nothing proves it, so nothing of it is believed
				if !is[*IdentityError](err) {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err != nil || len(got.Drives) != max(want, 0) || got.Left != "" {
				t.Errorf("%d drives, left %q, %v; want %d", len(got.Drives), got.Left, err, want)
			}
			for _, d := range got.Drives {
				if d.BehindVolume || d.Serial == "" || d.CapacityBytes == 0 || d.Name == "" {
					t.Errorf("got %+v", d)
				}
			}
		})
	}
	if len(tried) > 0 {
		t.Errorf("no tree of %v", slices.Collect(maps.Keys(tried)))
	}
}

// TestACountOfDrivesWouldRefuseMachines shows why drives are looked up by serial number: of the six captures that list drives, three
// list them twice, list virtual ones among them, or count a backplane.
func TestACountOfDrivesWouldRefuseMachines(t *testing.T) {
	folder := os.Getenv(treesVariable)
	if folder == "" {
		t.Skipf("set %s to a folder with captured Redfish trees (*.tar.gz) to run this test", treesVariable)
	}
	// disks is how many disks each machine has.
	disks := map[string]int{"dell-r750-idrac9": 3, "lenovo-sr670-xcc1": 2, "lenovo-sr670v2-xcc": 4, "nvidia-dgx-h100": 10, "nvidia-gb200": 9, "supermicro-821ge": 8}
	var refused []string
	for name, has := range disks {
		drives, devices := 0, 0
		for _, raw := range loadTree(t, filepath.Join(folder, name+".tar.gz")).docs {
			var doc struct {
				Type    text `json:"@odata.type"`
				Devices list[text]
			}
			if json.Unmarshal([]byte(raw), &doc) == nil && strings.HasPrefix(string(doc.Type), "#Drive.") {
				drives++
			}
			devices += len(doc.Devices.Values)
		}
		if drives != has || devices > 0 && devices != has {
			refused = append(refused, name)
		}
	}
	slices.Sort(refused)
	if want := []string{"dell-r750-idrac9", "nvidia-dgx-h100", "nvidia-gb200"}; !slices.Equal(refused, want) {
		t.Errorf("a count refuses %v, want %v", refused, want)
	}
}
