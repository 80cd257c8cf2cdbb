// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/redfish/emulator"
)

func TestATreeWithTwoHostsIsTwoMachinesBehindOneBMC(t *testing.T) {
	host := func(id string) string {
		return `{"PowerState":"Off","Actions":{"#ComputerSystem.Reset":{"target":"/redfish/v1/Systems/` + id + `/Actions/ComputerSystem.Reset"}}}`
	}
	dir := t.TempDir()
	for uri, body := range map[string]string{
		"":           `{"Systems":{"@odata.id":"/redfish/v1/Systems"}}`,
		"/Systems":   `{"Members":[{"@odata.id":"/redfish/v1/Systems/A"},{"@odata.id":"/redfish/v1/Systems/B"}]}`,
		"/Systems/A": host("A"), "/Systems/B": host("B"),
	} {
		folder := filepath.Join(dir, "redfish", "v1", uri)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "index.json"), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := emulator.ReadTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	fleet := build(Options{Machines: 1, Trees: []*emulator.Tree{tree}})
	defer fleet.Close()
	machines := fleet.Machines()
	if len(machines) != 2 || machines[0].SystemURI() != "/redfish/v1/Systems/A" || machines[1].SystemURI() != "/redfish/v1/Systems/B" {
		t.Errorf("machines %v", machines)
	}
	if manifests := endpoints(fleet); strings.Count(manifests, "kind: Endpoint") != 1 {
		t.Errorf("manifests:\n%s", manifests)
	}
	if said := inventions(fleet); !strings.Contains(said, "machine-001: the captured tree does not show") {
		t.Errorf("said %q", said)
	}
}
