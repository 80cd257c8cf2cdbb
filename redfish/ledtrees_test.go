// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// TestRealTreesTakeALightWhereTheyShowOne has the emulator serve each captured tree, with the manners of its make.
func TestRealTreesTakeALightWhereTheyShowOne(t *testing.T) {
	folder := os.Getenv(treesVariable)
	if folder == "" {
		t.Skipf("set %s to a folder with captured Redfish trees (*.tar.gz) to run this test", treesVariable)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s=%s holds no *.tar.gz (%v)", treesVariable, folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".tar.gz"), func(t *testing.T) {
			tree, err := emulator.ReadTree(file)
			if err != nil {
				t.Fatal(err)
			}
			m, bmc, _ := emulated(t, emulator.MachineSpec{Tree: tree})
			uri := ""
			if manager, err := bmc.Manager(t.Context()); err == nil {
				uri = manager.SystemURIs[0]
			} else {
				t.Fatal(err)
			}
			shown, err := bmc.System(t.Context(), uri)
			if err != nil {
				t.Fatal(err)
			}
			if shown.LED == LEDUnknown || shown.Identity.UUID == "" {
				t.Skipf("the tree shows the light %s, UUID %q", shown.LED, shown.Identity.UUID)
			}
			for _, led := range []IndicatorLED{LEDBlinking, LEDOff, LEDLit} {
				if err := bmc.SetLED(t.Context(), uri, shown.Identity, led); err != nil {
					t.Fatalf("%s: %v", led, err)
				}
				now, err := bmc.System(t.Context(), uri)
				if err != nil || now.LED != led || m.LED() != string(led) {
					t.Errorf("asked for %s: the BMC shows %s, the machine has %s (%v)", led, now.LED, m.LED(), err)
				}
			}
		})
	}
}
