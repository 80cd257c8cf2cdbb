// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/policy/source"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

func initCommand() *cobra.Command {
	from, name := policies.DefaultBundle, ""
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "init DIR [--from BUNDLE] [--name NAME]",
		Short: "Write the files of a new bundle to start from",
		Long: "Writes the commented files of a built-in bundle to a directory, under a name of your own, and a kustomization.yaml that makes " +
			"a ConfigMap of them. Change what you want to change, and take out the files that you do not, also from the list " +
			"in kustomization.yaml. What a bundle leaves out is taken from the built-in default when it is accepted. " +
			"Files that are there already are never overwritten.\n\n" +
			"Exit codes: 0 the files are written. 1 one was there already, or could not be written. 2 the command line makes no sense.",
		Example: "  {{.}} policy init fleet\n  {{.}} policy init --from no-discovery --name lab ./bundles/lab",
		Args:    usage.OneArg("init takes one directory"),
		RunE: terminal.Run(func(_ context.Context, t *terminal.Terminal, args []string) error {
			return initialise(t, args[0], from, name, output)
		}),
	}
	cmd.Flags().StringVar(&from, "from", from, "the built-in bundle to start from: "+strings.Join(policies.ShippedNames(), ", "))
	cmd.Flags().StringVar(&name, "name", "", "name of the new bundle; that of the directory where it is left out")
	terminal.Offer(cmd, "from", policies.ShippedNames())
	output.Register(cmd)
	return cmd
}

var (
	// What the built-in bundle says of itself is not true of one that is begun from it.
	builtInLine = regexp.MustCompile(`(?m)^# The bundle that is built into metalaw .*\n`)

	nameLine = regexp.MustCompile(`(?m)^name: .*$`)
	// A description may go on in indented lines.
	descriptionLine = regexp.MustCompile(`(?m)^description: .*(\n .*)*$`)

	versionLine = regexp.MustCompile(`(?m)^version: .*$`)
)

// firstVersion is the version of a bundle that nobody has changed yet.
const firstVersion = "0.1.0"

// initialised is a new bundle, for other programs.
type initialised struct {
	Bundle  string   `json:"bundle"`
	Version string   `json:"version"`
	From    string   `json:"from"`
	Files   []string `json:"files"`
}

func initialise(t *terminal.Terminal, dir, from, name string, output terminal.Output) error {
	files, err := policies.Shipped(from)
	if err != nil {
		return usage.Errorf("%v; there are %s", err, strings.Join(policies.ShippedNames(), ", "))
	}
	if name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		name = filepath.Base(abs)
	}
	if !bundle.ValidName(name) {
		return usage.Errorf("%q cannot be the name of a bundle; give one with --name, of lower-case letters, digits, dashes and dots, "+
			"at most 42", name)
	}
	head := builtInLine.ReplaceAll(files[bundle.BundleFile], nil)
	head = nameLine.ReplaceAll(head, []byte("name: "+quoted(name)))
	head = versionLine.ReplaceAll(head, []byte("version: "+firstVersion))
	files[bundle.BundleFile] = descriptionLine.ReplaceAll(head, []byte("description: Begun from the built-in bundle "+from+"."))
	files[source.KustomizationFile] = generated(name, slices.Sorted(maps.Keys(files)))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
			return fmt.Errorf("%s is there already, and nothing was written; take another directory", filepath.Join(dir, file))
		}
	}
	made := initialised{Bundle: name, Version: firstVersion, From: from}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, files[file], 0o644); err != nil { //nolint:gosec // For a repository.
			return err
		}
		made.Files = append(made.Files, path)
	}
	output.Show(t, made, func() {
		t.Printf("%s\n\nBundle %s %s, from %s. Next:\n  metalaw policy verify -f %s\n  kubectl apply --server-side "+
			"-k %s\n",
			strings.Join(made.Files, "\n"), name, firstVersion, from, dir, dir)
	})
	return nil
}

// quoted is a text as YAML writes it: in quotes where it would be read as a number or a boolean without them.
func quoted(text string) string {
	written, err := yaml.Marshal(text)
	if err != nil {
		return strconv.Quote(text)
	}
	return strings.TrimSpace(string(written))
}

// generated is the kustomization that makes the ConfigMap of a bundle from its files: as a draft, so that nothing is governed by it yet.
func generated(name string, files []string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `# kubectl apply --server-side -k DIR makes one ConfigMap of the files. A version that has left the stage draft does not
# change any more: for a change, raise version in bundle.yaml and in the name below. A file that you delete goes out of the list below
# too; it is taken from the built-in default then.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: metalaw-system
configMapGenerator:
- name: %s-%s
  options:
    disableNameSuffixHash: true
    labels:
      policy.metalaw.dev/bundle: %s
      policy.metalaw.dev/stage: draft   # then shadow, canary, active
  files:
`, name, firstVersion, quoted(name))
	for _, file := range files {
		fmt.Fprintf(&b, "  - %s\n", file)
	}
	return []byte(b.String())
}
