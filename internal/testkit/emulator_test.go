// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"os"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

func TestTheEmulatorsBundleIsAcceptedAndKnowsItsBMCs(t *testing.T) {
	cm, err := EmulatorConfigMap("ns")
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	own := bundle.Files{}
	for name, text := range cm.Data {
		own[name] = []byte(text)
	}
	b, report, err := policies.Accept(t.Context(), own.Filled(shipped))
	if err != nil || b == nil {
		t.Fatal(err, report.Found)
	}
	row, found := b.MACs.Lookup("02:4d:4c:00:00:01")
	if !found || row.Manufacturer != "Emulated" || row.Port != 8000 {
		t.Errorf("an emulated BMC has the row %+v", row)
	}
	if _, found := b.MACs.Lookup("b0:7b:25:00:00:01"); !found {
		t.Error("the rows of the shipped default are gone")
	}
}

func TestThePageOfTheEmulatorShowsTheRow(t *testing.T) {
	page, err := os.ReadFile("../../docs/emulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(emulatedRow, "- macPrefix")
	if !strings.Contains(string(page), "- macPrefix"+row) {
		t.Error("it shows another row than tests use")
	}
}
