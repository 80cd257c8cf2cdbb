// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// treesVariable names a folder of captured Redfish trees (<name>.tar.gz with <name>/redfish/v1/.../index.json). They hold
// real serial numbers, so they are not part of this repository.
const treesVariable = "METALAW_REDFISH_TREES"

// loadTree makes a fake BMC that serves a captured tree.
func loadTree(t *testing.T, file string) *fakeBMC {
	t.Helper()
	archive, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t)
	f.docs = map[string]string{}
	for entries := tar.NewReader(unzipped); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		_, inside, _ := strings.Cut(path.Clean(entry.Name), "/")
		if path.Base(inside) != "index.json" {
			continue
		}
		doc, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		f.docs["/"+path.Dir(inside)] = string(doc)
	}
	f.docs["/redfish/v1/"] = f.docs["/redfish/v1"]
	return f
}

func TestRealTrees(t *testing.T) {
	folder := os.Getenv(treesVariable)
	if folder == "" {
		t.Skipf("set %s to a folder with captured Redfish trees (*.tar.gz) to run this test", treesVariable)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s=%s holds no *.tar.gz (%v)", treesVariable, folder, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".tar.gz")
		t.Run(name, func(t *testing.T) {
			f := loadTree(t, file)
			c := f.client(t)
			manager, err := c.Manager(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(manager.SystemURIs) == 0 || len(manager.Unreadable) != 0 {
				t.Fatalf("systems %v, unreadable %v", manager.SystemURIs, manager.Unreadable)
			}
			for _, uri := range manager.SystemURIs {
				walkTree(t, f, c, uri)
			}
			if want, known := realTrees[name]; known {
				checkTree(t, c, manager, want)
			}
			checkManagerReset(t, f, c, manager)
		})
	}
}

// walkTree holds for every tree, known or not.
func walkTree(t *testing.T, f *fakeBMC, c BMC, uri string) {
	detail, err := c.SystemDetail(t.Context(), uri)
	if err != nil || detail.NICsIncomplete {
		t.Fatalf("%s: %v, incomplete %v", uri, err, detail.NICsIncomplete)
	}
	f.seen()
	snapshot, err := c.System(t.Context(), uri)
	if err != nil || len(f.seen()) != 1 {
		t.Fatalf("%s: a poll is not one request, or failed: %v", uri, err)
	}
	if diff := cmp.Diff(detail, snapshot, cmpopts.IgnoreFields(SystemSnapshot{}, "TakenAt", "NICs")); diff != "" {
		t.Errorf("%s: the two reads differ: %s", uri, diff)
	}
	if snapshot.Identity.UUID == "" && snapshot.Identity.SerialNumber == "" {
		var identity *IdentityError
		if err := c.Reset(t.Context(), uri, snapshot.Identity, ActionForceOff); !errors.As(err, &identity) {
			t.Errorf("%s: a system without an identity was written to: %v", uri, err)
		}
		return
	}
	action, words := ActionForceOff, []string{"ForceOff", "Off"}
	if snapshot.Power == PowerOff {
		action, words = ActionOn, []string{"On"}
	}
	if err := c.Reset(t.Context(), uri, snapshot.Identity, action); err != nil {
		t.Errorf("%s: %v", uri, err)
	}
	sent := strings.Join(f.seen(http.MethodPost), "\n")
	ok := false
	for _, word := range words {
		ok = ok || strings.HasSuffix(sent, `{"ResetType":"`+word+`"}`)
	}
	if !ok {
		t.Errorf("%s: sent %q", uri, sent)
	}
	if err := c.PowerOnOnce(t.Context(), uri, snapshot.Identity, "Pxe"); (err == nil) != (snapshot.Power == PowerOff) || err != nil && !errors.Is(err, ErrNotOff) {
		t.Errorf("%s: power %s, PowerOnOnce: %v", uri, snapshot.Power, err)
	}
}

// checkManagerReset resets the BMC by what it said of itself, and by nothing else. Some trees offer one way to restart only.
func checkManagerReset(t *testing.T, f *fakeBMC, c BMC, manager ManagerSnapshot) {
	f.seen()
	want := ManagerIdentity{UUID: manager.UUID, SerialNumber: manager.SerialNumber}
	for _, s := range manager.Listed {
		if s.Identity.UUID != "" {
			want.Systems = append(want.Systems, SystemAt{URI: s.URI, Identity: s.Identity})
		}
	}
	uri, known := treeManagers[path.Base(t.Name())]
	if got := c.(*client).recall(); known && (got.managerURI != uri || !got.managerProven) {
		t.Errorf("read %s (proven %t), want %s", got.managerURI, got.managerProven, uri)
	}
	graceful := true
	err := c.ResetManager(t.Context(), want, graceful)
	var unsupported *UnsupportedError
	if errors.As(err, &unsupported) && len(f.seen(http.MethodPost)) == 0 {
		graceful = false
		err = c.ResetManager(t.Context(), want, graceful)
	}
	sent := f.seen(http.MethodPost)
	if want.UUID == "" && want.SerialNumber == "" && len(want.Systems) == 0 {
		return // it is refused, as one of another identity is
	}
	if err != nil || len(sent) != 1 {
		t.Errorf("reset of the BMC: %v", err)
	}
	if known && !strings.HasPrefix(strings.Join(sent, ""), "POST "+uri+"/") {
		t.Errorf("restarted %q, want %s", sent, uri)
	}
	want.UUID = "11111111-2222-3333-4444-555555555555"
	var identity *IdentityError
	if err := c.ResetManager(t.Context(), want, graceful); !errors.As(err, &identity) {
		t.Errorf("reset of another BMC: %v", err)
	}
}

// realTree is what a tree shows, without the numbers that would identify a machine.
type realTree struct {
	uri, managerModel string
	hasUUID           bool
	power             PowerState
	memoryGiB         int64
	cpus, nics        int
	allowed           []string
}

var realTrees = map[string]realTree{
	"dell-r750-idrac9": {uri: "/redfish/v1/Systems/System.Embedded.1", hasUUID: true, power: PowerOn, memoryGiB: 512, cpus: 2, nics: 5,
		managerModel: "15G Monolithic", allowed: []string{"None", "Pxe", "Floppy", "Cd", "Hdd", "BiosSetup", "Utilities", "UefiTarget", "SDCard", "UefiHttp"}},
	"supermicro-821ge": {uri: "/redfish/v1/Systems/1", hasUUID: true, power: PowerOn, memoryGiB: 2048, cpus: 2, nics: 11, managerModel: "ASPEED",
		allowed: []string{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UsbCd", "UefiBootNext", "UefiHttp"}},
	"openbmc-stock": {uri: "/redfish/v1/Systems/system", power: PowerOff, managerModel: "OpenBmc",
		allowed: []string{"None", "Pxe", "Hdd", "Cd", "Diags", "BiosSetup", "Usb"}},
}

func checkTree(t *testing.T, c BMC, manager ManagerSnapshot, want realTree) {
	s, err := c.SystemDetail(t.Context(), manager.SystemURIs[0])
	if err != nil {
		t.Fatal(err)
	}
	got := realTree{uri: s.URI, managerModel: manager.Model, hasUUID: s.Identity.UUID != "", power: s.Power, memoryGiB: s.MemoryBytes >> 30,
		cpus: s.CPUCount, nics: len(s.NICs), allowed: s.Boot.Allowed}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(realTree{})); diff != "" {
		t.Error(diff)
	}
}
