// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// read is a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThePageAboutTheEmulatorNamesEveryTrouble(t *testing.T) {
	page := read(t, "docs/emulator.md")
	for _, trouble := range emulator.Catalogue() {
		if !strings.Contains(page, "`"+trouble.Name+"`") {
			t.Errorf("docs/emulator.md lacks %s", trouble.Name)
		}
	}
	example := regexp.MustCompile("(?s)```yaml\n# faults.yaml\n(.*?)```").FindStringSubmatch(page)
	if example == nil {
		t.Fatal("docs/emulator.md shows no faults.yaml")
	}
	if faults, err := emulator.ParseFaults([]byte(example[1])); err != nil || len(faults) != 3 {
		t.Errorf("%d faults, %v", len(faults), err)
	}
}

// A flag that is given twice is a trap: the overlay replaces what the shipped manifest says.
func TestTheOverlayReplacesTheShippedRegistryURL(t *testing.T) {
	shown := regexp.MustCompile(`\{op: (test|replace), path: /spec/template/spec/containers/0/args/(\d+), value: "(.*?)"\}`).
		FindAllStringSubmatch(read(t, "docs/operations.md"), -1)
	if len(shown) != 2 || shown[0][1] != "test" || shown[1][1] != "replace" || shown[0][2] != shown[1][2] {
		t.Fatalf("docs/operations.md shows %q", shown)
	}
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Args []string `yaml:"args"`
					} `yaml:"containers"`
				} `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "config/manager/deployment.yaml")), &deployment); err != nil {
		t.Fatal(err)
	}
	args := deployment.Spec.Template.Spec.Containers[0].Args
	index, err := strconv.Atoi(shown[0][2])
	if err != nil || index >= len(args) || args[index] != shown[0][3] || !strings.HasPrefix(shown[1][3], "--registry-url=") {
		t.Errorf("argument %d of the shipped manifest is not %s: %q", index, shown[0][3], args)
	}
}
