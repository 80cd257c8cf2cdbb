// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// madeUpTree is a tree by hand; no machine has its numbers.
func madeUpTree() map[string]string {
	return map[string]string{
		"/redfish/v1": `{"Name":"Root","Systems":{"@odata.id":"/redfish/v1/Systems"},"Managers":{"@odata.id":"/redfish/v1/Managers"},
			"SessionService":{"@odata.id":"/redfish/v1/SessionService"},
			"ProtocolFeaturesSupported":{"ExpandQuery":{"NoLinks":true,"Levels":true,"MaxLevels":1}}}`,
		"/redfish/v1/SessionService": `{"Id":"SessionService","SessionTimeout":45}`,
		"/redfish/v1/Systems":        `{"Members":[{"@odata.id":"/redfish/v1/Systems/GPUs"},{"@odata.id":"/redfish/v1/systems/Host"},{"@odata.id":"/redfish/v1/Systems/Gone"}]}`,
		"/redfish/v1/Systems/GPUs":   `{"@odata.id":"/redfish/v1/Systems/GPUs","Id":"GPUs","PowerState":"On"}`,
		"/redfish/v1/Systems/Host": `{"@odata.id":"/redfish/v1/Systems/Host","@odata.etag":"\"abc\"","Id":"Host","Model":"Box","PowerState":"On",
			"UUID":"AAAAAAAA-0000-4000-8000-000000000001","Weight":12345678901234567890,
			"Boot":{"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None","BootSourceOverrideTarget@Redfish.AllowableValues":["None","Pxe"],
				"StopBootOnFault":"Never","BootOrder":["B1","B2"],"BootOptions":{"@odata.id":"/redfish/v1/Systems/Host/BootOptions"}},
			"EthernetInterfaces":{"@odata.id":"/redfish/v1/Systems/Host/EthernetInterfaces"},"Storage":{"@odata.id":"/redfish/v1/Systems/Host/Storage"},
			"Links":{"ManagedBy":[{"@odata.id":"/redfish/v1/Managers/BMC"}]},
			"@Redfish.Settings":{"SettingsObject":{"@odata.id":"/redfish/v1/Systems/Host/Pending"}},
			"Actions":{"#ComputerSystem.Reset":{"target":"/redfish/v1/Systems/Host/Actions/ComputerSystem.Reset","@Redfish.ActionInfo":"/redfish/v1/Systems/Host/ResetInfo"}}}`,
		"/redfish/v1/Systems/Host/Pending":                      `{"Id":"Pending","Boot":{"BootOrder":["B1","B2"]}}`,
		"/redfish/v1/Systems/Host/ResetInfo":                    `{"Parameters":[{"Name":"ResetType","AllowableValues":["On","ForceOff","Off"]}]}`,
		"/redfish/v1/Systems/Host/BootOptions":                  `{"Members":[{"@odata.id":"/redfish/v1/Systems/Host/BootOptions/1"}]}`,
		"/redfish/v1/Systems/Host/BootOptions/1":                `{"Id":"B1","DisplayName":"UEFI PXE IPv4"}`,
		"/redfish/v1/Systems/Host/EthernetInterfaces":           `{"Members":[{"@odata.id":"/redfish/v1/Systems/Host/EthernetInterfaces/1"},{"@odata.id":"/redfish/v1/Systems/Host/EthernetInterfaces/ToManager"}]}`,
		"/redfish/v1/Systems/Host/EthernetInterfaces/1":         `{"Id":"1","MACAddress":"02-00-00-00-00-0A","LinkStatus":"LinkUp"}`,
		"/redfish/v1/Systems/Host/EthernetInterfaces/ToManager": `{"Id":"ToManager","MACAddress":"02:00:00:00:00:0B"}`,
		"/redfish/v1/Systems/Host/Storage":                      `{"Members":[{"@odata.id":"/redfish/v1/Systems/Host/Storage/1"}]}`,
		"/redfish/v1/Systems/Host/Storage/1":                    `{"Drives":[{"@odata.id":"/redfish/v1/Chassis/1/Drives/1"},{"@odata.id":"/redfish/v1/Chassis/1/Drives/2"}]}`,
		"/redfish/v1/Chassis/1/Drives/1":                        `{"Name":"Bay 1","Protocol":"SATA","MediaType":"HDD","CapacityBytes":1000,"SerialNumber":"D1"}`,
		"/redfish/v1/Chassis/1/Drives/2":                        `{"Name":"Bay 2","CapacityBytes":null}`,
		"/redfish/v1/Managers":                                  `{"Members":[{"@odata.id":"/redfish/v1/Managers/GPUs"},{"@odata.id":"/redfish/v1/Managers/BMC"}]}`,
		"/redfish/v1/Managers/GPUs":                             `{"Id":"GPUs","FirmwareVersion":"9","Actions":{"#Manager.Reset":{"target":"/redfish/v1/Managers/GPUs/Actions/Manager.Reset"}}}`,
		"/redfish/v1/Managers/BMC": `{"Id":"BMC","FirmwareVersion":"1.2","EthernetInterfaces":{"@odata.id":"/redfish/v1/Managers/BMC/EthernetInterfaces"},
			"Actions":{"#Manager.Reset":{"target":"/redfish/v1/Managers/BMC/Actions/Manager.Reset","ResetType@Redfish.AllowableValues":["ForceRestart"]}}}`,
		"/redfish/v1/Managers/BMC/EthernetInterfaces":   `{"Members":[{"@odata.id":"/redfish/v1/Managers/BMC/EthernetInterfaces/1"},{"@odata.id":"/redfish/v1/Managers/BMC/EthernetInterfaces/2"}]}`,
		"/redfish/v1/Managers/BMC/EthernetInterfaces/1": `{"MACAddress":"06:00:00:00:00:01"}`,
		"/redfish/v1/Managers/BMC/EthernetInterfaces/2": `{"MACAddress":"00:00:5E:00:53:01"}`,
		"/redfish/v1/Broken":                            `{"no JSON"`,
	}
}

// packed makes an archive as captures have it.
func packed(t testing.TB, name string, docs map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for uri, body := range docs {
		if err := w.WriteHeader(&tar.Header{Name: name + uri + "/index.json", Mode: 0o644, Size: int64(len(body))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipped(t testing.TB, archive []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(archive); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// servedTree starts a BMC that serves the made-up tree after a change.
func servedTree(t *testing.T, spec MachineSpec, change func(map[string]string)) (*Machine, *caller) {
	t.Helper()
	docs := madeUpTree()
	if change != nil {
		change(docs)
	}
	tree, err := parseTree("made-up", bytes.NewReader(packed(t, "made-up", docs)))
	if err != nil {
		t.Fatal(err)
	}
	f := New(Options{InMemory: true, Delays: instant})
	spec.Tree = tree
	machines := f.AddTree(spec)
	if err := f.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return machines[0], call(t, f, machines[0])
}

const treeHostPath = "/redfish/v1/Systems/Host"

func TestATreeIsServedAsItWasCapturedButForPowerAndBoot(t *testing.T) {
	m, c := servedTree(t, MachineSpec{Power: PowerOff}, nil)
	got := c.do(http.MethodGet, treeHostPath, nil, 200)
	if got.doc["PowerState"] != "Off" || got.doc["Model"] != "Box" || got.header.Get("Etag") == `"abc"` {
		t.Errorf("got %v with tag %s", got.doc, got.header.Get("Etag"))
	}
	if !strings.Contains(string(got.raw), "12345678901234567890") {
		t.Errorf("a number lost digits: %s", got.raw)
	}
	c.do(http.MethodGet, "/redfish/v1/SYSTEMS/host/", nil, 200)
	c.do(http.MethodGet, "/redfish/v1/Systems/Gone", nil, 404)
	if tray := c.do(http.MethodGet, "/redfish/v1/Systems/GPUs", nil, 200); tray.doc["PowerState"] != "On" {
		t.Errorf("the tray: %v", tray.doc)
	}
	if broken := c.do(http.MethodGet, "/redfish/v1/Broken", nil, 200); string(broken.raw) != `{"no JSON"` {
		t.Errorf("a resource that is no JSON: %s", broken.raw)
	}
	c.do(http.MethodPatch, treeHostPath, doc{"Boot": doc{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}, 200)
	c.do(http.MethodPost, treeHostPath+"/Actions/ComputerSystem.Reset", doc{"ResetType": "On"}, 204)
	if boot, running := m.Running(); !running || boot.Target != "Pxe" || !boot.Override {
		t.Errorf("runs %v, %v", boot, running)
	}
	c.do(http.MethodPost, treeHostPath+"/Actions/ComputerSystem.Reset", doc{"ResetType": "Off"}, 204)
	if m.Power() != PowerOff {
		t.Errorf("power %s", m.Power())
	}
	c.do(http.MethodPost, treeHostPath+"/Actions/ComputerSystem.Reset", doc{"ResetType": "GracefulShutdown"}, 400)
}

func TestAMachineIsWhatItsTreeShowsAndTheRestIsNamed(t *testing.T) {
	m, c := servedTree(t, MachineSpec{Name: "m"}, nil)
	c.header["User-Agent"] = "test"
	if m.Power() != PowerOn || m.SystemURI() != treeHostPath || m.BMCMAC() != "00:00:5e:00:53:01" || m.bmc.profileNow().FirmwareVersion != "1.2" {
		t.Errorf("power %s, uri %s, MAC %s, firmware %s", m.Power(), m.SystemURI(), m.BMCMAC(), m.bmc.profileNow().FirmwareVersion)
	}
	if boot, _ := m.Running(); boot.Target != "Pxe" || boot.Override {
		t.Errorf("without an override it boots %v", boot)
	}
	if diff := cmp.Diff([]NIC{{Name: "1", MACAddress: "02:00:00:00:00:0a", LinkUp: true}}, m.NICs()); diff != "" {
		t.Error(diff)
	}
	if d := m.Drives(); len(d) != 1 || d[0].Name != "sda" || d[0].Serial != "D1" || !d[0].Rotational {
		t.Errorf("drives %v", d)
	}
	want := []string{
		"the user name and password of the BMC", "the whole TaskService",
		"the BIOS version", "the number of CPUs", "the serial number that the machine reads of itself", "the size of the memory",
	}
	if diff := cmp.Diff(want, m.Invented()); diff != "" {
		t.Error(diff)
	}
	c.do(http.MethodGet, "/redfish/v1/TaskService", nil, 200)
}

func TestATreeRefusesWhatItDoesNotShow(t *testing.T) {
	boot := func(name string, value any) doc { return doc{"Boot": doc{name: value}} }
	for name, c := range map[string]struct {
		path string
		body any
		want string
	}{
		"a property that nothing shows":                  {treeHostPath, doc{"Colour": "red"}, "PropertyUnknown #/Colour"},
		"a boot property that is not shown":              {treeHostPath, boot("BootSourceOverrideMode", "UEFI"), "PropertyUnknown #/Boot/BootSourceOverrideMode"},
		"an override where only the boot order is shown": {treeHostPath + "/Pending", boot("BootSourceOverrideTarget", "Pxe"), "PropertyUnknown #/Boot/BootSourceOverrideTarget"},
		"a property that is not emulated":                {treeHostPath, doc{"Model": "Other"}, "PropertyNotWritable #/Model"},
		"a boot property that is not emulated":           {treeHostPath, boot("StopBootOnFault", "AnyFault"), "PropertyNotWritable #/Boot/StopBootOnFault"},
		"a value that is not offered":                    {treeHostPath, boot("BootSourceOverrideTarget", "Cd"), "PropertyValueNotInList #/Boot/BootSourceOverrideTarget"},
		"a value of another type":                        {treeHostPath, boot("BootSourceOverrideEnabled", 1), "PropertyValueTypeError #/Boot/BootSourceOverrideEnabled"},
		"boot settings that are no object":               {treeHostPath, doc{"Boot": "Pxe"}, "PropertyValueTypeError #/Boot"},
		"a light that is not shown":                      {treeHostPath, doc{"LocationIndicatorActive": true}, "PropertyUnknown #/LocationIndicatorActive"},
		"a light of another system":                      {"/redfish/v1/Systems/GPUs", doc{"IndicatorLED": "Lit"}, "PropertyUnknown #/IndicatorLED"},
		"an order that leaves options out":               {treeHostPath, boot("BootOrder", []string{"B1"}), "PropertyValueError #/Boot/BootOrder"},
		"a change elsewhere":                             {"/redfish/v1/Systems/GPUs", doc{"PowerState": "Off"}, "PropertyNotWritable #/PowerState"},
	} {
		t.Run(name, func(t *testing.T) {
			m, call := servedTree(t, MachineSpec{}, nil)
			got := call.do(http.MethodPatch, c.path, c.body, 400)
			id, pointer, _ := strings.Cut(c.want, " ")
			if !strings.Contains(string(got.raw), "Base.1.13."+id) || !strings.Contains(string(got.raw), `"RelatedProperties":["`+pointer+`"]`) {
				t.Errorf("want %s, got %s", c.want, got.raw)
			}
			if enabled, target := m.Override(); enabled != "Disabled" || target != "None" {
				t.Errorf("the override is %s %s", enabled, target)
			}
		})
	}
}

func TestEachMakeHasItsManners(t *testing.T) {
	maker := func(name string) func(map[string]string) {
		return func(docs map[string]string) {
			docs["/redfish/v1"] = strings.Replace(docs["/redfish/v1"], `"Name":"Root"`, `"Oem":{"`+name+`":{}}`, 1)
			docs[treeHostPath] = strings.Replace(docs[treeHostPath], `"BootOrder"`, `"BootSourceOverrideMode":"UEFI","BootOrder"`, 1)
			docs[treeHostPath+"/Pending"] = `{"@odata.etag":"\"p\"","Boot":{"BootSourceOverrideTarget":"None","BootSourceOverrideEnabled":"Disabled"}}`
		}
	}
	pxe := doc{"Boot": doc{"BootSourceOverrideTarget": "Pxe"}}
	reset := treeHostPath + "/Actions/ComputerSystem.Reset"
	for name, c := range map[string]struct {
		maker, method, path, tag string
		body                     doc
		status                   int
	}{
		"AMI wants an entity tag":                    {"Ami", "PATCH", treeHostPath + "/Pending", "", pxe, 428},
		"AMI takes an override at its settings":      {"Ami", "PATCH", treeHostPath + "/Pending", `"p"`, pxe, 200},
		"AMI takes none at the system":               {"Ami", "PATCH", treeHostPath, "*", pxe, 400},
		"a stale entity tag is refused":              {"Lenovo", "PATCH", treeHostPath, `"other"`, pxe, 412},
		"others want no entity tag":                  {"Lenovo", "PATCH", treeHostPath, "", pxe, 200},
		"Dell refuses an entity tag with an action":  {"Dell", "POST", reset, `"abc"`, doc{"ResetType": "ForceOff"}, 412},
		"Dell takes an action without":               {"Dell", "POST", reset, "", doc{"ResetType": "ForceOff"}, 204},
		"HPE's boot mode is read only":               {"Hpe", "PATCH", treeHostPath, "", doc{"Boot": doc{"BootSourceOverrideMode": "UEFI"}}, 400},
		"HPE says that the system is in that state":  {"Hpe", "POST", reset, "", doc{"ResetType": "On"}, 400},
		"HPE answers a reset with a message":         {"Hpe", "POST", reset, "", doc{"ResetType": "ForceOff"}, 200},
		"Supermicro forgets a mode that is not said": {"Supermicro", "PATCH", treeHostPath, "", pxe, 200},
	} {
		t.Run(name, func(t *testing.T) {
			m, call := servedTree(t, MachineSpec{}, maker(c.maker))
			if c.tag != "" {
				call.header["If-Match"] = c.tag
			}
			call.do(c.method, c.path, c.body, c.status)
			if changed, _ := m.Override(); (changed == "Once") != (c.method == "PATCH" && c.status == 200) {
				t.Errorf("the override is %s", changed)
			}
			if mode := object(call.do("GET", treeHostPath, nil, 200).doc, "Boot")["BootSourceOverrideMode"]; c.maker == "Supermicro" && mode != "Legacy" {
				t.Errorf("the mode is %v", mode)
			}
		})
	}
}

func TestOnlyTheOwnManagerRestartsTheBMC(t *testing.T) {
	m, c := servedTree(t, MachineSpec{Delays: Delays{BMCReset: -1}}, nil)
	c.do("POST", "/redfish/v1/SessionService/Sessions", doc{"UserName": c.user, "Password": c.pass}, 201)
	c.do("POST", "/redfish/v1/Managers/GPUs/Actions/Manager.Reset", doc{"ResetType": "ForceRestart"}, 204)
	c.do("POST", "/redfish/v1/Managers/BMC/Actions/Manager.Reset", doc{"ResetType": "GracefulRestart"}, 400)
	if len(m.Sessions()) != 1 {
		t.Error("the session is gone")
	}
	c.do("POST", "/redfish/v1/Managers/BMC/Actions/Manager.Reset", doc{"ResetType": "ForceRestart"}, 204)
	// The restart begins when the answer is out.
	if _, err := m.wait(short(t), "the end of all sessions", func() bool { return len(m.bmc.sessions) == 0 }); err != nil {
		t.Error(err)
	}
}

func TestTwoHostsOfATreeAreTwoMachines(t *testing.T) {
	m, c := servedTree(t, MachineSpec{Name: "blade", Power: PowerOff}, func(docs map[string]string) {
		docs["/redfish/v1/Systems"] = `{"Members":[{"@odata.id":"/redfish/v1/Systems/Host"},{"@odata.id":"/redfish/v1/Systems/Other"}]}`
		docs["/redfish/v1/Systems/Other"] = strings.ReplaceAll(docs[treeHostPath], "Systems/Host", "Systems/Other")
	})
	other := m.bmc.fleet.Machine("blade-1")
	c.do("POST", "/redfish/v1/Systems/Other/Actions/ComputerSystem.Reset", doc{"ResetType": "On"}, 204)
	if m.Power() != PowerOff || other.Power() != PowerOn {
		t.Errorf("power %s and %s", m.Power(), other.Power())
	}
}

func TestATreeIsReadFromAFolderAndFromAnArchive(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "box.tar.gz")
	if err := os.WriteFile(archive, zipped(t, packed(t, "box", madeUpTree())), 0o600); err != nil {
		t.Fatal(err)
	}
	for uri, body := range madeUpTree() {
		folder := filepath.Join(dir, "folder", "box", uri)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "index.json"), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{archive, filepath.Join(dir, "folder"), filepath.Join(dir, "folder", "box")} {
		tree, err := ReadTree(file)
		if err != nil || len(tree.docs) != len(madeUpTree()) || tree.Hosts() != 1 {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestAnArchiveThatIsNoTreeIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		name string
		docs map[string]string
		want string
	}{
		"nothing in it":      {"x", nil, "holds no <name>/redfish/v1/index.json"},
		"a way out of it":    {"../x", map[string]string{"/redfish/v1": "{}"}, "leads out of the archive"},
		"an absolute way":    {"/x", map[string]string{"/redfish/v1": "{}"}, "leads out of the archive"},
		"a tree too deep":    {"a/b", map[string]string{"/redfish/v1": "{}"}, "holds no <name>/redfish/v1/index.json"},
		"no system":          {"x", map[string]string{"/redfish/v1": "{}"}, "no system with the action ComputerSystem.Reset"},
		"a root that is odd": {"x", map[string]string{"/redfish/v1": "[]"}, "holds no <name>/redfish/v1/index.json"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseTree("x", bytes.NewReader(packed(t, c.name, c.docs)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	docs := packed(t, "x", madeUpTree())
	whole, half := zipped(t, docs), filepath.Join(t.TempDir(), "half.tar.gz")
	if err := os.WriteFile(half, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTree(half); err == nil {
		t.Error("half an archive is accepted")
	}
	if _, err := parseTree("x", bytes.NewReader(append(docs[:len(docs)-1024], packed(t, "y", madeUpTree())...))); err == nil {
		t.Error("two trees are accepted")
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add(packed(f, "made-up", madeUpTree()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := parseTree("fuzz", bytes.NewReader(data))
		if err != nil {
			return
		}
		// What was accepted can be served.
		fleet := New(Options{InMemory: true, Delays: instant})
		defer fleet.Close()
		for _, m := range fleet.AddTree(MachineSpec{Tree: tree}) {
			if m.Err() != nil || m.Invented() == nil {
				t.Errorf("%v, invented %v", m.Err(), m.Invented())
			}
			for uri := range tree.docs {
				tree.route(uri)
			}
		}
	})
}

// FuzzTreeHost varies what a system shows, which FuzzParseTree seldom gets to.
func FuzzTreeHost(f *testing.F) {
	f.Add(madeUpTree()[treeHostPath])
	f.Add(`{"Boot":[],"Actions":{"#ComputerSystem.Reset":{"target":"/x"}},"Links":{"ManagedBy":[1,{"@odata.id":1}]},"UUID":null,"PowerState":3}`)
	f.Fuzz(func(t *testing.T, host string) {
		docs := madeUpTree()
		docs[treeHostPath] = host
		tree, err := parseTree("fuzz", bytes.NewReader(packed(t, "fuzz", docs)))
		if err != nil {
			return
		}
		fleet := New(Options{InMemory: true, Delays: instant})
		defer fleet.Close()
		m := fleet.AddTree(MachineSpec{Tree: tree, Power: PowerOff})[0]
		x := &exchange{fleet: fleet, bmc: m.bmc, path: treeHostPath, params: map[string]string{"system": m.systemID}}
		getTreeHost(x)
	})
}
