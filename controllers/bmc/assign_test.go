// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bmcsystems"
	"github.com/metalaw/metalaw/redfish"
)

const (
	node0, node1 = "/redfish/v1/Systems/Node0", "/redfish/v1/Systems/Node1"
	mac0, mac1   = "00:40:a6:00:00:01", "00:40:a6:00:00:02"
)

// crayNodes are two nodes of a Cray EX: no UUID, and one serial number for both.
func crayNodes() []System {
	return []System{
		{URI: node0, Identity: redfish.Identity{SerialNumber: "S"}, MACs: []string{mac0}},
		{URI: node1, Identity: redfish.Identity{SerialNumber: "S"}, MACs: []string{mac1}},
	}
}

func TestAssign(t *testing.T) {
	entry := func(uri, uuid, proof string) string { return uri + ": {uuid: " + uuid + ", " + proof + "}\n" }
	own := []System{{URI: node0, Identity: redfish.Identity{UUID: uuid2}}}
	openBMC := []System{{URI: node0}}
	for name, c := range map[string]struct {
		systems    []System
		annotation string
		uuids      []string // what the systems bear; empty where a word says why not
		says       string   // of the first system that bears none
	}{
		"nothing is assigned":                   {crayNodes(), "", []string{"", ""}, `assign its SMBIOS UUID by annotation policy.metalaw.dev/system-uuids (it shows serial "S" and mac "00:40:a6:00:00:01")`},
		"what is not shown is left out":         {[]System{{URI: node0, Identity: redfish.Identity{SerialNumber: "S"}}}, "", []string{""}, `(it shows serial "S")`},
		"serial number and MAC tell two nodes":  {crayNodes(), entry(node0, uuid1, "serial: S, mac: '"+mac0+"'") + entry(node1, uuid2, "mac: '"+mac1+"'"), []string{uuid1, uuid2}, ""},
		"a shared serial number is not enough":  {crayNodes(), entry(node0, uuid1, "serial: S"), []string{"", ""}, "shares its serial number with another system"},
		"a serial number of its own is enough":  {crayNodes()[:1], entry(node0, uuid1, "serial: S"), []string{uuid1}, ""},
		"another MAC address is refused":        {crayNodes(), entry(node0, uuid1, "mac: '"+mac1+"'"), []string{"", ""}, "does not show the MAC address " + mac1},
		"another serial number is refused":      {crayNodes(), entry(node0, uuid1, "serial: T, mac: '"+mac0+"'"), []string{"", ""}, `shows the serial number "S" and not "T"`},
		"a UUID of its own counts":              {own, entry(node0, uuid1, "serial: S"), []string{uuid2}, ""},
		"nothing to prove it by is said":        {openBMC, "", []string{""}, "shows no UUID, no serial number and no MAC address"},
		"what is not shown proves nothing":      {openBMC, entry(node0, uuid1, "serial: S"), []string{""}, `shows no serial number, and "S" is wanted`},
		"an annotation that cannot be read":     {crayNodes(), "Node0=" + uuid1, []string{"", ""}, "cannot be read"},
		"a slash at the end is the same system": {crayNodes(), entry(node0+"/", uuid1, "mac: '"+mac0+"'"), []string{uuid1, ""}, "shows no UUID"},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			for i, s := range assign(c.systems, c.annotation) {
				if s.Identity.UUID != c.uuids[i] || (s.Refused == "") != (c.uuids[i] != "") {
					t.Errorf("%s bears %q: %s", s.URI, s.Identity.UUID, s.Refused)
				}
				if said == "" {
					said = s.Refused
				}
			}
			if !strings.Contains(said, c.says) || (said == "") != (c.says == "") {
				t.Errorf("says %q", said)
			}
		})
	}
}

// TestTwoNodesThatShareASerialNumberBecomeTwoServers goes through the controller, up to an exchange that moves a UUID.
func TestTwoNodesThatShareASerialNumberBecomeTwoServers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.must(w.api.Delete(t.Context(), &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "b-system-0"}}))
		w.devices["b"].change(func(d *device) {
			d.manager.SystemURIs = []string{node0, node1}
			d.systems = map[string]redfish.Identity{node0: {SerialNumber: "S"}, node1: {SerialNumber: "S"}}
			d.macs = map[string][]string{node0: {mac0}, node1: {mac1}}
		})
		assigned := func(first, second string) func(*v1alpha1.BMC) {
			return func(b *v1alpha1.BMC) {
				b.Annotations = map[string]string{v1alpha1.SystemUUIDsAnnotation: node0 + ": {uuid: " + first + ", mac: '" + mac0 + "'}\n" +
					node1 + ": {uuid: " + second + ", mac: '" + mac1 + "'}"}
			}
		}
		w.rest("b")
		w.expect("b", v1alpha1.ConditionSystemsAccepted, "False SystemUnidentified")
		w.change("b", assigned(uuid1, uuid2))
		w.rest("b")
		w.expect("b", v1alpha1.ConditionSystemsAccepted, "True SystemsKnown")
		if got := w.standsAt(); got != uuid1+" at "+node0+", "+uuid2+" at "+node1 {
			t.Fatalf("Servers %s", got)
		}
		w.change("b", assigned(uuid2, uuid1)) // as where admission was not asked
		w.pass("b", 4*time.Minute)
		if got := w.standsAt(); got != uuid1+" at "+node0+", "+uuid2+" at "+node1 {
			t.Errorf("a Server stands for another system: %s", got)
		}
		w.expect("b", v1alpha1.ConditionSystemsAccepted, "False SystemConflict")
		if len(w.devices["b"].resets) > 0 {
			t.Error("the BMC was restarted")
		}
	})
}

// standsAt lists the Servers by the machine and where it is.
func (w *world) standsAt() string {
	w.t.Helper()
	var list v1alpha1.ServerList
	w.must(w.api.List(w.t.Context(), &list))
	var all []string
	for i := range list.Items {
		all = append(all, list.Items[i].Spec.SystemUUID+" at "+list.Items[i].Spec.SystemURI)
	}
	return strings.Join(all, ", ")
}

func TestAnAssignedUUIDStaysWithItsMachine(t *testing.T) {
	system := func(mac string) System {
		return System{URI: node0, Assignment: bmcsystems.Assignment{UUID: uuid1, MAC: mac}}
	}
	held := server{name: "s", bmc: "b", uri: node0, holds: true, hardware: bmcsystems.Record{SerialNumbers: []string{"S"}, MACs: []string{mac0}}}
	shows := func(serial string, a bmcsystems.Assignment) System {
		a.UUID = uuid1
		return System{URI: node0, Identity: redfish.Identity{UUID: uuid1, SerialNumber: serial}, Assignment: a}
	}
	free := held
	free.holds = false
	unread := server{name: "s", bmc: "b", uri: node0, holds: true}
	remembered := held
	remembered.name, remembered.uri = "", ""
	elsewhere, clean, moves := held, held, held
	elsewhere.bmc, clean.bmc, clean.holds, moves.uri = "old", "old", false, node1
	for name, c := range map[string]struct {
		known  server
		system System
		says   string // empty where it may come
	}{
		"where it was":   {held, system(mac0), ""},
		"at another URI": {moves, system(mac0), "is assigned to the system " + node0 + " now and was to " + node1},
		"behind another BMC, by an address it has":     {elsewhere, system(mac0), ""},
		"behind another BMC, by an address it has not": {elsewhere, system(mac1), "That machine does not have it"},
		"the same where nothing is held":               {clean, system(mac1), ""},
		"where it was, by another machine":             {held, shows("T", bmcsystems.Assignment{SerialNumber: "T", MAC: mac1}), "of Server s, which is held or Dirty, is assigned to the system " + node0 + ` with serial "T"`},
		"where it was, by another machine's MAC alone": {held, shows("T", bmcsystems.Assignment{MAC: mac1}), "is another machine's"},
		"where it was, with an exchanged card":         {held, shows("S", bmcsystems.Assignment{MAC: mac1}), ""},
		"where it was, with an exchanged board":        {held, shows("T", bmcsystems.Assignment{SerialNumber: "T", MAC: mac0}), ""},
		"where nothing is held":                        {free, shows("T", bmcsystems.Assignment{SerialNumber: "T", MAC: mac1}), ""},
		"where nothing was recorded":                   {unread, shows("T", bmcsystems.Assignment{SerialNumber: "T", MAC: mac1}), ""},
		"where an inventory alone remembers it":        {remembered, shows("T", bmcsystems.Assignment{SerialNumber: "T", MAC: mac1}), "of a ServerInventory, which is held or Dirty"},
		"a UUID of its own":                            {moves, System{URI: node0}, ""},
	} {
		if got := moved(c.known, c.system, "b"); !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
