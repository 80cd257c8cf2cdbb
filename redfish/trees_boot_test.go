// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// treeManagers are the BMCs of captured trees, read off their links by hand.
var treeManagers = map[string]string{
	"cray-ex235n":        "/redfish/v1/Managers/BMC",
	"dell-r750-idrac9":   "/redfish/v1/Managers/iDRAC.Embedded.1",
	"hpe-dl325-ilo5":     "/redfish/v1/Managers/1",
	"lenovo-sr670-xcc1":  "/redfish/v1/Managers/1",
	"lenovo-sr670v2-xcc": "/redfish/v1/Managers/1",
	"nvidia-dgx-h100":    "/redfish/v1/Managers/BMC",
	"nvidia-gb200":       "/redfish/v1/Managers/BMC_0",
	"openbmc-stock":      "/redfish/v1/Managers/bmc",
	"supermicro-821ge":   "/redfish/v1/Managers/1",
}

// treeOverrides say where each captured BMC takes a boot override, and whether it wants If-Match there. A tree that is
// not listed has no identity to be written by (openbmc-stock) or shows no override (cray-ex235n).
var treeOverrides = map[string]struct {
	system, writes string
	body           string
	ifMatch        bool
}{
	"dell-r750-idrac9":   {"/redfish/v1/Systems/System.Embedded.1", "/redfish/v1/Systems/System.Embedded.1", fullOverride, false},
	"hpe-dl325-ilo5":     {"/redfish/v1/Systems/1", "/redfish/v1/Systems/1", fullOverride, false},
	"lenovo-sr670-xcc1":  {"/redfish/v1/Systems/1", "/redfish/v1/Systems/1", fullOverride, true},
	"lenovo-sr670v2-xcc": {"/redfish/v1/Systems/1", "/redfish/v1/Systems/1", fullOverride, true},
	"nvidia-dgx-h100":    {"/redfish/v1/Systems/DGX", "/redfish/v1/Systems/DGX/SD", fullOverride, true},
	"nvidia-gb200":       {"/redfish/v1/Systems/System_0", "/redfish/v1/Systems/System_0/Settings", plainOverride, false},
	"supermicro-821ge":   {"/redfish/v1/Systems/1", "/redfish/v1/Systems/1", fullOverride, false},
}

// TestRealTreesTakeTheOverrideWhereTheyShowIt refuses what a tree does not show, as a BMC does.
func TestRealTreesTakeTheOverrideWhereTheyShowIt(t *testing.T) {
	folder := os.Getenv(treesVariable)
	if folder == "" {
		t.Skipf("set %s to a folder with captured Redfish trees (*.tar.gz) to run this test", treesVariable)
	}
	for name, c := range treeOverrides {
		t.Run(name, func(t *testing.T) {
			f := loadTree(t, filepath.Join(folder, name+".tar.gz"))
			var system map[string]any
			if err := json.Unmarshal([]byte(f.docs[c.system]), &system); err != nil {
				t.Fatal(err)
			}
			system["PowerState"] = "Off" // the captures were taken of machines that run
			changed, err := json.Marshal(system)
			if err != nil {
				t.Fatal(err)
			}
			f.set(c.system, string(changed))
			f.onlyShown(c.system, c.ifMatch)
			f.onlyShown(c.writes, c.ifMatch)
			bmc := f.client(t)
			snapshot, err := bmc.System(t.Context(), c.system)
			if err != nil {
				t.Fatal(err)
			}
			if err := bmc.PowerOnOnce(t.Context(), c.system, snapshot.Identity, "Pxe"); err != nil {
				t.Error(err)
			}
			wantLines(t, f.seen("PATCH"), "PATCH "+c.writes+" "+c.body)
			if err := bmc.ClearBoot(t.Context(), c.system, snapshot.Identity); err != nil {
				t.Error(err)
			}
			if got := strings.Join(f.seen("PATCH"), "\n"); got != "PATCH "+c.writes+" "+noOverride {
				t.Errorf("cleared by %q", got)
			}
		})
	}
}
