// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"strings"
	"testing"
)

func TestTheManagerOfTheHostIsTheBMC(t *testing.T) {
	links := func(kind string, uris ...string) string {
		for i, uri := range uris {
			uris[i] = `{"@odata.id":"` + uri + `"}`
		}
		return `"Links":{"` + kind + `":[` + strings.Join(uris, ",") + `]}`
	}
	const tray = "/redfish/v1/Systems/HGX_Baseboard_0"
	for name, c := range map[string]struct {
		host     string            // further fields of the host
		managers map[string]string // fields of each manager
		provides string            // what the service root names
		reads    string            // the manager that is read
		restarts bool
	}{
		"the host names it, the GPU board's lists servers (DGX H100)": {
			links("ManagedBy", "/m/b"), map[string]string{"a": links("ManagerForServers", tray), "b": ""}, "", "b", true},
		"the host names it, the service root another": {links("ManagedBy", "/m/b"), map[string]string{"a": "", "b": ""}, "/m/a", "b", true},
		"the host names it in other letters":          {links("ManagedBy", "/m/b/"), map[string]string{"a": "", "b": ""}, "", "b", true},
		"the host names none, one that is no BMC by type lists it (Cray EX)": {
			"", map[string]string{"a": `"ManagerType":"AuxiliaryController"`,
				"b": `"ManagerType":"EnclosureManager",` + links("ManagerForServers", systemURI+"/")}, "", "b", true},
		"the host names one that is gone": {links("ManagedBy", "/m/gone"),
			map[string]string{"a": "", "b": links("ManagerForServers", systemURI)}, "", "b", true},
		"the host names its BMC and that of the chassis": {links("ManagedBy", "/m/a", "/m/b"),
			map[string]string{"a": `"ManagerType":"EnclosureManager"`, "b": `"ManagerType":"BMC"`}, "", "b", true},
		"the host names two BMCs": {links("ManagedBy", "/m/a", "/m/b"),
			map[string]string{"a": `"ManagerType":"BMC"`, "b": `"ManagerType":"BMC"`}, "", "a", false},
		"only the GPU board's lists servers":          {"", map[string]string{"a": `"ManagerType":"BMC",` + links("ManagerForServers", tray), "b": `"ManagerType":"BMC"`}, "", "b", false},
		"nothing names it but the service root":       {"", map[string]string{"a": "", "b": ""}, "/m/b", "b", false},
		"nothing names it, and it is the only one":    {"", map[string]string{"a": ""}, "", "a", false},
		"the only one lists a server that is no host": {"", map[string]string{"a": links("ManagerForServers", tray)}, "", "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			more := ""
			if c.host != "" {
				more = "," + c.host
			}
			f.set(systemURI, systemJSON("Off", more))
			var members []string
			for _, id := range []string{"a", "b"} {
				fields, there := c.managers[id]
				if !there {
					continue
				}
				doc := strings.ReplaceAll(bareFake().docs[managerURI], managerURI, "/m/"+id)
				doc = strings.Replace(doc, `"Links":{"ManagerForServers":[{"@odata.id":"`+systemURI+`"}]},`, "", 1)
				doc = strings.Replace(doc, `"ManagerType":"BMC"`, `"Name":"`+id+`"`, 1)
				if fields == "" {
					fields = `"ManagerType":"Service"`
				}
				f.set("/m/"+id, strings.Replace(doc, `"Model":"M"`, `"Model":"`+id+`",`+fields, 1))
				f.set("/m/"+id+"/", f.docs["/m/"+id])
				members = append(members, `{"@odata.id":"/m/`+id+`"}`)
			}
			f.set("/redfish/v1/Managers", `{"Members":[`+strings.Join(members, ",")+`]}`)
			if c.provides != "" {
				f.set("/redfish/v1/", strings.Replace(f.docs["/redfish/v1/"], `"Links":{`, `"Links":{"ManagerProvidingService":{"@odata.id":"`+c.provides+`"},`, 1))
			}
			bmc := f.client(t)
			got, err := bmc.Manager(t.Context())
			if err != nil || got.Model != c.reads {
				t.Errorf("read %q, %v; want %q", got.Model, err, c.reads)
			}
			f.seen()
			err = bmc.ResetManager(t.Context(), provenBySystem, true)
			sent := f.seen("POST")
			var refused *UnsupportedError
			if c.restarts && (err != nil || len(sent) != 1 || !strings.Contains(sent[0], "/m/"+c.reads+"/Actions")) {
				t.Errorf("restart: %v, sent %q", err, sent)
			}
			if !c.restarts && (!errors.As(err, &refused) || len(sent) != 0) {
				t.Errorf("a manager that nothing proves was restarted: %v, sent %q", err, sent)
			}
		})
	}
}
