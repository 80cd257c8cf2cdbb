// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestAddWarnsOfAPriorityThatEveryNamespaceMayAskFor(t *testing.T) {
	for name, left := range map[string][]string{
		"a bundle of all files":                 nil,
		"a bundle that leaves out most of them": {"lifecycle.yaml", "macprefixes.yaml", "scenarios.yaml", "admission.rego", "admission_test.rego"},
	} {
		t.Run(name, func(t *testing.T) { addWarns(t, left) })
	}
}

// addWarns adds a reserve to a bundle that leaves files out, with and without a bound on what namespaces may ask for.
func addWarns(t *testing.T, left []string) {
	t.Helper()
	dir := begun(t, "default")
	for _, name := range left {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	add := func() string {
		root := &cobra.Command{Use: "metalaw", SilenceUsage: true, SilenceErrors: true}
		root.AddCommand(Command("metalaw"))
		var out, complaints bytes.Buffer
		root.SetArgs([]string{"policy", "add", dir, "reserve-per-zone", "--set", "priority=500"})
		root.SetOut(&out)
		root.SetErr(&complaints)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err, out.String())
		}
		return complaints.String()
	}
	if got := add(); !strings.HasPrefix(got, "warning: reserve-per-zone keeps something for claims of priority 500, ") {
		t.Errorf("it says %q", got)
	}
	file := filepath.Join(dir, "bundle.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(text(t, file), "settings:\n", "settings:\n  claims: {priority: {max: 499, namespaces: {core: 500}}}\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := add(); got != "" {
		t.Errorf("it says %q", got)
	}
}
