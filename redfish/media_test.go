// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/redfish/emulator"
)

const (
	service  = "https://boot.example:8083/media/"
	imageOne = service + "one-that-cannot-be-guessed.iso"
	imageTwo = service + "two-that-cannot-be-guessed.iso"
)

// emulated is a machine of the emulator and a client of its BMC.
func emulated(t *testing.T, spec emulator.MachineSpec) (*emulator.Machine, BMC, Identity) {
	t.Helper()
	f := emulator.New(emulator.Options{Network: "127.71.0.0/16", Delays: emulator.Delays{Power: -1, Boot: -1}})
	m := f.Add(spec)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	e := endpointOf(m.URL())
	e.CABundle, e.InsecureSkipVerify = f.CA(), true
	user, password := m.Credentials()
	return m, poolOf(t).Get("bmc", e, Credentials{Username: user, Password: password}), Identity{UUID: m.Identity().UUID, SerialNumber: m.Identity().SerialNumber}
}

func writesOf(m *emulator.Machine) []string {
	var all []string
	for _, w := range m.Writes() {
		if !strings.Contains(w.Path, "/Sessions") {
			all = append(all, w.Method+" "+w.Path)
		}
	}
	return all
}

func TestEachMakeBootsOnceFromAnInsertedImageAndGivesItBack(t *testing.T) {
	for profile, slot := range map[string]string{
		emulator.ProfileGeneric: "/redfish/v1/Systems/1/VirtualMedia/CD1/Actions/VirtualMedia.InsertMedia",
		emulator.ProfileDell:    "/redfish/v1/Systems/System.Embedded.1/VirtualMedia/1/Actions/VirtualMedia.InsertMedia",
		emulator.ProfileHPE:     "/redfish/v1/Managers/1/VirtualMedia/2/Actions/VirtualMedia.InsertMedia",
		emulator.ProfileLenovo:  "/redfish/v1/Systems/1/VirtualMedia/EXT1",
		emulator.ProfileGB200:   "/redfish/v1/Managers/BMC_0/VirtualMedia/USB2/Actions/VirtualMedia.InsertMedia",
		emulator.ProfileSupermicro: "/redfish/v1/Managers/1/VirtualMedia/VirtualMedia1/Actions/" +
			"VirtualMedia.InsertMedia",
	} {
		t.Run(profile, func(t *testing.T) {
			m, bmc, self := emulated(t, emulator.MachineSpec{Profile: profile})
			insert := func(image string) {
				t.Helper()
				if err := bmc.InsertMedia(t.Context(), m.SystemURI(), self, MediaRequest{URL: image, Ours: service}); err != nil {
					t.Fatal(err)
				}
			}
			insert(imageOne)
			if wrote := writesOf(m); len(wrote) != 1 || !strings.HasSuffix(wrote[0], " "+slot) {
				t.Errorf("wrote %q, want one write of %s", wrote, slot)
			}
			insert(imageOne)
			if wrote := writesOf(m); len(wrote) != 1 {
				t.Errorf("a repeated insert wrote: %q", wrote)
			}
			insert(imageTwo) // the entry changed
			states, err := bmc.Media(t.Context(), m.SystemURI())
			if err != nil || !slices.ContainsFunc(states, func(s MediaState) bool { return s.Inserted && s.Image == imageTwo }) {
				t.Errorf("drives %+v, %v", states, err)
			}
			if err := bmc.PowerOnOnce(t.Context(), m.SystemURI(), self, "Cd"); err != nil {
				t.Fatal(err)
			}
			if booted, err := m.WaitRunning(t.Context()); err != nil || booted.MediaURL != imageTwo {
				t.Errorf("booted %+v, %v", booted, err)
			}
			for range 2 {
				if err := bmc.EjectMedia(t.Context(), m.SystemURI(), self, service); err != nil || len(m.Media()) != 0 {
					t.Errorf("eject: %v, still in: %v", err, m.Media())
				}
			}
		})
	}
}

func TestMediaThatABMCDoesNotTakeIsRefusedWithARemedy(t *testing.T) {
	request := MediaRequest{URL: imageOne, Ours: service}
	for name, c := range map[string]struct {
		spec  emulator.MachineSpec
		fault *emulator.Fault
		says  []string
	}{
		"no drives at all":      {emulator.MachineSpec{Profile: emulator.ProfileOpenBMC}, nil, []string{"/Systems/system", "boot it from the network"}},
		"drives not enabled":    {emulator.MachineSpec{Profile: emulator.ProfileDGX}, nil, []string{"enable virtual media"}},
		"the BMC cannot open":   {emulator.MachineSpec{}, new(emulator.InsertRefused()), []string{"Unable to mount remote share", "POST"}},
		"accepted and not done": {emulator.MachineSpec{}, &emulator.Fault{Method: "POST", Path: "/redfish/v1/Systems/*/VirtualMedia/**", Action: emulator.Action{Ignore: true}}, []string{"it shows no image", "licence"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, bmc, self := emulated(t, c.spec)
			if c.fault != nil {
				m.Inject(*c.fault)
			}
			err := bmc.InsertMedia(t.Context(), m.SystemURI(), self, request)
			if err == nil || !Refused(err) {
				t.Fatalf("error %v, refused %t", err, Refused(err))
			}
			for _, word := range append(c.says, "") {
				if !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), imageOne) {
					t.Errorf("error %q, want %q and no URL of an image", err, word)
				}
			}
		})
	}
}

func TestAnImageOfAnotherOwnerIsNeitherReplacedNorEjected(t *testing.T) {
	m, bmc, self := emulated(t, emulator.MachineSpec{Profile: emulator.ProfileDell})
	const theirs = "https://elsewhere.example/installer.iso"
	if err := bmc.InsertMedia(t.Context(), m.SystemURI(), self, MediaRequest{URL: theirs}); err != nil {
		t.Fatal(err)
	}
	err := bmc.InsertMedia(t.Context(), m.SystemURI(), self, MediaRequest{URL: imageOne, Ours: service})
	if media, ok := errors.AsType[*MediaError](err); !ok || !strings.Contains(media.Error(), "eject that image") || strings.Contains(media.Error(), "installer") {
		t.Errorf("error %v", err)
	}
	if err := bmc.EjectMedia(t.Context(), m.SystemURI(), self, service); err != nil || len(m.Media()) != 1 {
		t.Errorf("%v, in the drives: %v", err, m.Media())
	}
	if err := bmc.EjectMedia(t.Context(), m.SystemURI(), self, ""); err != nil || len(m.Media()) != 0 {
		t.Errorf("%v, in the drives: %v", err, m.Media())
	}
}

func TestAnEjectThatDoesNotHappenIsAnError(t *testing.T) {
	m, bmc, self := emulated(t, emulator.MachineSpec{})
	if err := bmc.InsertMedia(t.Context(), m.SystemURI(), self, MediaRequest{URL: imageOne}); err != nil {
		t.Fatal(err)
	}
	m.Inject(emulator.EjectIgnored())
	err := bmc.EjectMedia(t.Context(), m.SystemURI(), self, service)
	if media, ok := errors.AsType[*MediaError](err); !ok || !strings.Contains(media.Error(), "an image of https://boot.example:8083; eject it by hand") {
		t.Errorf("error %v", err)
	}
}

func TestDrivesOfSeveralSystemsInOneListAreNotUsed(t *testing.T) {
	f := newFake(t)
	f.set(systemURI, strings.TrimSuffix(systemJSON("Off"), "}")+`,"Links":{"ManagedBy":[{"@odata.id":"`+managerURI+`"}]}}`)
	f.set(managerURI, `{"@odata.id":"`+managerURI+`","Id":"1","VirtualMedia":{"@odata.id":"/vm"},
		"Links":{"ManagerForServers":[{"@odata.id":"`+systemURI+`"},{"@odata.id":"/redfish/v1/Systems/2"}]}}`)
	err := f.warm(t).InsertMedia(t.Context(), systemURI, self, MediaRequest{URL: imageOne})
	if err == nil || !strings.Contains(err.Error(), "several systems in one list") {
		t.Errorf("error %v", err)
	}
	wantLines(t, f.seen("POST", "PATCH"))
}

// treeDrives say where each captured BMC lists drives for CDs; a tree that is not listed offers none.
var treeDrives = map[string]string{
	"dell-r750-idrac9":   "/redfish/v1/Systems/System.Embedded.1/VirtualMedia/1 /redfish/v1/Systems/System.Embedded.1/VirtualMedia/2",
	"hpe-dl325-ilo5":     "/redfish/v1/Managers/1/VirtualMedia/2",
	"lenovo-sr670-xcc1":  "/redfish/v1/Managers/1/VirtualMedia/RDOC1 /redfish/v1/Managers/1/VirtualMedia/RDOC2 /redfish/v1/Managers/1/VirtualMedia/EXT1",
	"lenovo-sr670v2-xcc": "/redfish/v1/Systems/1/VirtualMedia/EXT1",
	"nvidia-gb200":       "/redfish/v1/Managers/BMC_0/VirtualMedia/USB2 /redfish/v1/Managers/BMC_0/VirtualMedia/USB1",
	"supermicro-821ge":   "/redfish/v1/Managers/1/VirtualMedia/VirtualMedia1",
}

func TestRealTreesShowTheirVirtualDrives(t *testing.T) {
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
			tree, err := emulator.ReadTree(file)
			if err != nil {
				t.Fatal(err)
			}
			m, bmc, self := emulated(t, emulator.MachineSpec{Tree: tree, Power: emulator.PowerOff})
			states, err := bmc.Media(t.Context(), m.SystemURI())
			var uris []string
			for _, s := range states {
				uris = append(uris, s.URI)
			}
			want := treeDrives[name]
			if !strings.HasPrefix(strings.Join(uris, " "), want) || (want == "") != (err != nil) {
				t.Fatalf("drives %q, %v", uris, err)
			}
			if want == "" {
				if !Refused(err) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err := bmc.InsertMedia(t.Context(), m.SystemURI(), self, MediaRequest{URL: imageOne, Ours: service}); err != nil || len(m.Media()) != 1 {
				t.Errorf("insert: %v, in the drives: %v", err, m.Media())
			}
			if states, err = bmc.Media(t.Context(), m.SystemURI()); err != nil {
				t.Fatal(err)
			}
			for _, s := range states {
				if s.Inserted && (strings.Contains(s.URI, "/RDOC") || strings.Contains(s.URI, "/Remote")) {
					t.Errorf("the image is in %s, which takes none by URL", s.URI)
				}
			}
			if err := bmc.EjectMedia(t.Context(), m.SystemURI(), self, service); err != nil || len(m.Media()) != 0 {
				t.Errorf("eject: %v, in the drives: %v", err, m.Media())
			}
		})
	}
}
