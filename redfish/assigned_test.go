// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	assignedUUID = "0a000000-0000-4000-8000-00000000000a"
	nodeMAC      = "00:40:a6:00:00:01"
)

func TestShows(t *testing.T) {
	want := func(serial, mac string) Identity {
		return Identity{UUID: assignedUUID, SerialNumber: serial, MAC: mac, Assigned: true}
	}
	got := func(uuid, serial string, macs ...string) SystemSnapshot {
		s := SystemSnapshot{Identity: Identity{UUID: uuid, SerialNumber: serial}}
		for _, mac := range macs {
			s.NICs = append(s.NICs, NIC{MACAddress: mac})
		}
		return s
	}
	for name, c := range map[string]struct {
		want Identity
		got  SystemSnapshot
		same bool
	}{
		"a UUID of its own is compared as ever":          {Identity{UUID: systemUUID}, got(systemUUID, "other"), true},
		"an assigned UUID without its mark proves none":  {Identity{UUID: assignedUUID, SerialNumber: "S1"}, got("", "S1"), false},
		"its serial number proves it":                    {want("S1", ""), got("", "s1"), true},
		"its MAC address proves it":                      {want("", nodeMAC), got("", "", nodeMAC), true},
		"both are asked for where both are stated":       {want("S1", nodeMAC), got("", "S1", nodeMAC), true},
		"another serial number is another system":        {want("S1", nodeMAC), got("", "S2", nodeMAC), false},
		"another MAC address is another system":          {want("S1", nodeMAC), got("", "S1", "00:40:a6:00:00:02"), false},
		"a MAC address that is not shown proves nothing": {want("", nodeMAC), got("", "S1"), false},
		"neither serial number nor MAC proves nothing":   {want("", ""), got("", ""), false},
		"a placeholder is no serial number":              {want("To be filled by O.E.M.", ""), got("", "To be filled by O.E.M."), false},
		"a system that comes to show the UUID is it":     {want("S1", ""), got(assignedUUID, "S1"), true},
		"one that shows another UUID is another":         {want("S1", ""), got(systemUUID, "S1"), false},
	} {
		if same := Shows(c.want, c.got); same != c.same {
			t.Errorf("%s: %v", name, same)
		}
	}
}

// crayNode is what node controllers of Cray EX show: no UUID, boot order and boot options, and no override.
func crayNode(power string) string {
	return `{"@odata.id":"` + systemURI + `","Id":"Node0","SerialNumber":"S1","PowerState":"` + power + `",
		"Boot":{"BootOptions":{"@odata.id":"` + systemURI + `/BootOptions"},"BootOrder":["Boot1","Boot2"]},
		"EthernetInterfaces":{"@odata.id":"` + nicsURI + `"},
		"Actions":{"#ComputerSystem.Reset":{"target":"` + resetURI + `","ResetType@Redfish.AllowableValues":["On","Off","ForceOff"]}}}`
}

func crayFake(t *testing.T, power string) *fakeBMC {
	f := newFake(t)
	f.set(systemURI, crayNode(power))
	f.set(nicsURI, `{"Members":[{"@odata.id":"/n/1","Id":"ManagementEthernet","MACAddress":"`+nodeMAC+`"}]}`)
	return f
}

func TestASystemIsWrittenToOnlyWhereItsMACAddressProvesIt(t *testing.T) {
	f := crayFake(t, "On")
	c := f.warm(t)
	want := Identity{UUID: assignedUUID, SerialNumber: "S1", MAC: nodeMAC, Assigned: true}
	if err := c.Reset(t.Context(), systemURI, want, ActionForceOff); err != nil {
		t.Fatal(err)
	}
	wantLines(t, f.seen(http.MethodPost), "POST "+resetURI+` {"ResetType":"ForceOff"}`)
	want.MAC = "00:40:a6:00:00:02"
	var identity *IdentityError
	if err := c.Reset(t.Context(), systemURI, want, ActionForceOff); !errors.As(err, &identity) || len(f.seen(http.MethodPost)) > 0 {
		t.Errorf("another node was written to: %v", err)
	}
}

func TestASystemWithoutAnOverrideIsSwitchedOnByItsBootOrderAlone(t *testing.T) {
	want := Identity{UUID: assignedUUID, SerialNumber: "S1", Assigned: true}
	on := "POST " + resetURI + ` {"ResetType":"On"}`
	for name, c := range map[string]struct {
		doc, target string
		want        Identity
		sent        []string
		ends        error
	}{
		"by its boot order":                          {crayNode("Off"), TargetBootOrder, want, []string{on}, nil},
		"not by an override that it does not show":   {crayNode("Off"), "Pxe", want, nil, &UnsupportedError{}},
		"not while it is on":                         {crayNode("On"), TargetBootOrder, want, nil, ErrNotOff},
		"not by its boot order where it has another": {systemJSON("Off"), TargetBootOrder, self, nil, &UnsupportedError{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.set(systemURI, c.doc)
			bmc := f.warm(t)
			err := bmc.PowerOnOnce(t.Context(), systemURI, c.want, c.target)
			var unsupported *UnsupportedError
			switch {
			case c.ends == nil && err != nil, errors.Is(c.ends, ErrNotOff) && !errors.Is(err, ErrNotOff):
				t.Errorf("error %v", err)
			case errors.As(c.ends, &unsupported) && !errors.As(err, &unsupported):
				t.Errorf("error %v", err)
			}
			wantLines(t, f.seen(http.MethodPost, http.MethodPatch), c.sent...)
		})
	}
}

func TestOnlyBootSettingsThatAreThereSayThatNoOverrideIs(t *testing.T) {
	for name, c := range map[string]struct {
		boot    string
		missing bool
	}{
		"a boot order and no override": {`,"Boot":{"BootOrder":["Boot1"]}`, true},
		"boot options and no override": {`,"Boot":{"BootOptions":{"@odata.id":"` + systemURI + `/BootOptions"}}`, true},
		"empty boot settings":          {`,"Boot":{}`, false},
		"settings that are null":       {`,"Boot":{"BootSourceOverrideEnabled":null,"BootOrder":null,"BootOptions":null}`, false},
		"an empty boot order":          {`,"Boot":{"BootOrder":[]}`, false},
		"no boot settings":             {``, false},
		"an override beside the order": {`,"Boot":{"BootOrder":["Boot1"],"BootSourceOverrideEnabled":"Disabled"}`, false},
		"targets beside the order":     {`,"Boot":{"BootOrder":["Boot1"],"BootSourceOverrideTarget@Redfish.AllowableValues":["Pxe"]}`, false},
	} {
		f := newFake(t)
		bmc := f.warm(t)
		f.set(systemURI, `{"@odata.id":"`+systemURI+`","UUID":"`+systemUUID+`","PowerState":"Off"`+c.boot+`}`)
		if s, err := bmc.System(t.Context(), systemURI); err != nil || s.Boot.Missing != c.missing {
			t.Errorf("%s: missing %v, %v", name, s.Boot.Missing, err)
		}
	}
}

// TestCrayNodesAreToldApart reads the captured tree of two nodes that share one serial number.
func TestCrayNodesAreToldApart(t *testing.T) {
	folder := os.Getenv(treesVariable)
	if folder == "" {
		t.Skipf("set %s to a folder with captured Redfish trees (*.tar.gz) to run this test", treesVariable)
	}
	file := filepath.Join(folder, "cray-ex235n.tar.gz")
	if _, err := os.Stat(file); err != nil {
		t.Skipf("%s: %v", treesVariable, err)
	}
	f := loadTree(t, file)
	c := f.client(t)
	var nodes []SystemSnapshot
	for _, uri := range []string{"/redfish/v1/Systems/Node0", "/redfish/v1/Systems/Node1"} {
		s, err := c.SystemDetail(t.Context(), uri)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, s)
	}
	if nodes[0].Identity.SerialNumber != nodes[1].Identity.SerialNumber || nodes[0].Identity.UUID != "" || !nodes[0].Boot.Missing || len(nodes[0].NICs) == 0 {
		t.Fatalf("the nodes are not as expected: %d NICs, override missing %v", len(nodes[0].NICs), nodes[0].Boot.Missing)
	}
	want := Identity{UUID: assignedUUID, SerialNumber: nodes[0].Identity.SerialNumber, MAC: nodes[0].NICs[0].MACAddress, Assigned: true}
	f.seen()
	if err := c.Reset(t.Context(), nodes[0].URI, want, ActionForceOff); err != nil {
		t.Error(err)
	}
	var identity *IdentityError
	if err := c.Reset(t.Context(), nodes[1].URI, want, ActionForceOff); !errors.As(err, &identity) {
		t.Errorf("the other node was taken for it: %v", err)
	}
	for _, line := range f.seen(http.MethodPost) {
		if !strings.Contains(line, "/Systems/Node0/") && !strings.Contains(line, "Session") {
			t.Errorf("sent %s", line)
		}
	}
}
