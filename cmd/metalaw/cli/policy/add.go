// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/policy/source"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/library"
)

func addCommand() *cobra.Command {
	var set []string
	var dryRun bool
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "add [DIR NAME...] [--set [NAME.]PARAMETER=VALUE]",
		Short: "Add policies of the library to a bundle",
		Long: "Writes the files of policies from metalaw's library into the directory of a bundle, with their tests, and the rule of " +
			"selection.rego or admission.rego that uses each. From then on they are files of the bundle like any other: what is in " +
			"force is in its revision, and an upgrade of metalaw changes nothing. Parameters are constants at the top of a policy's " +
			"file; --set writes them, as Rego values or plain words. A second time changes nothing but the parameters that are set. " +
			"Nothing is written if the bundle would not be accepted, if a file of the policy was changed by hand, or if the name is " +
			"taken already. Without arguments it lists the library.\n\nExit codes: 0 done. 1 it would " +
			"clash, or the bundle would not be accepted, and nothing was written. 2 the command line makes no sense.",
		Example: "  {{.}} policy add\n  {{.}} policy add fleet spread-over-racks wear-levelling\n" +
			"  {{.}} policy add fleet reserve-per-zone --set percent=20 --set priority=500",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return library.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: terminal.Run(func(ctx context.Context, t *terminal.Terminal, args []string) error {
			switch len(args) {
			case 0:
				return listLibrary(t, output)
			case 1:
				return usage.Errorf("which policy? Name the directory and then policies of the library: %s", strings.Join(library.Names(), ", "))
			}
			return addTo(ctx, t, args[0], args[1:], addition{set: set, dryRun: dryRun, output: output})
		}),
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "a parameter of a policy; with several policies, write the policy's name and a dot before it")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and write nothing")
	output.Register(cmd)
	return cmd
}

// addition is how policies are added.
type addition struct {
	set    []string
	dryRun bool
	output terminal.Output
}

// offered is a policy of the library, for other programs.
type offered struct {
	Name       string   `json:"name"`
	Parameters []string `json:"parameters,omitempty"`
	Summary    string   `json:"summary"`
}

// added is what was, or would be, done to a bundle, for other programs.
type added struct {
	Policies []string `json:"policies"`
	DryRun   bool     `json:"dryRun,omitempty"`
	Changes  []string `json:"changes"`
}

func listLibrary(t *terminal.Terminal, output terminal.Output) error {
	all, err := library.All()
	if err != nil {
		return err
	}
	shown := lists.Map(all, func(p *library.Policy) offered {
		return offered{Name: p.Name, Summary: p.Summary,
			Parameters: lists.Map(p.Parameters, func(one *library.Parameter) string { return one.Name })}
	})
	output.Show(t, shown, func() {
		t.Table([]string{"POLICY", "PARAMETERS", "WHAT IT DOES"}, lists.Map(shown, func(p *offered) []string {
			return []string{p.Name, strings.Join(p.Parameters, ", "), p.Summary}
		}))
	})
	return nil
}

// addTo adds policies to the bundle of a directory. All are written, or none.
func addTo(ctx context.Context, t *terminal.Terminal, dir string, names []string, how addition) error {
	values, err := parametersFor(names, how.set)
	if err != nil {
		return err
	}
	before, err := ownFilesIn(dir)
	if err != nil {
		return err
	}
	fill, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		return err
	}
	files, said, taken := before, []string{}, []library.Policy{}
	for _, name := range names {
		p, err := library.Find(name)
		if err != nil {
			return usage.Errorf("%v; there are %s", err, strings.Join(library.Names(), ", "))
		}
		after, changes, err := p.Add(files, fill, values[name])
		if err != nil {
			return fmt.Errorf("policy %s cannot be added to %s, and nothing was written: %w", name, dir, err)
		}
		files, taken = after, append(taken, p)
		for _, c := range changes {
			said = append(said, fmt.Sprintf("%s: %s", filepath.Join(dir, c.File), c.What))
		}
	}
	b, err := accepted(ctx, how.output.Beside(t), dir, before, files)
	if err != nil {
		return err
	}
	if err := warnOf(t, files, b.Settings, taken); err != nil {
		return err
	}
	changed, note, err := changedIn(dir, before, files)
	if err != nil {
		return err
	}
	if note != "" {
		said = append(said, note)
	}
	if !how.dryRun {
		if err := replaceAll(changed); err != nil {
			return err
		}
	}
	how.output.Show(t, added{Policies: names, DryRun: how.dryRun, Changes: said}, func() {
		if len(said) == 0 {
			said = []string{"nothing to do: the bundle has all of it already"}
		}
		t.Printf("%s\n", strings.Join(said, "\n"))
	})
	return nil
}

// warnOf tells of policies that do not do in the bundle what they say, because of its settings. These are those of the bundle as it was
// accepted, with what its own files leave out.
func warnOf(t *terminal.Terminal, files bundle.Files, settings bundle.Settings, added []library.Policy) error {
	for _, p := range added {
		warnings, err := p.Warnings(files, settings.Claims)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			t.Notef("warning: %s", w)
		}
	}
	return nil
}

// parametersFor are the values to set, by policy.
func parametersFor(names, set []string) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for _, one := range set {
		key, value, ok := strings.Cut(one, "=")
		if !ok {
			return nil, usage.Errorf("--set %s has no value; write PARAMETER=VALUE", one)
		}
		name, parameter, qualified := strings.Cut(key, ".")
		if !qualified {
			name, parameter = names[0], key
		}
		if !qualified && len(names) > 1 || !slices.Contains(names, name) {
			return nil, usage.Errorf("--set %s: of which policy? Write NAME.PARAMETER=VALUE, with NAME one of "+
				"%s", one, strings.Join(names, ", "))
		}
		if all[name] == nil {
			all[name] = map[string]string{}
		}
		all[name][parameter] = value
	}
	return all, nil
}

// ownFilesIn are the files that a bundle keeps in its directory.
func ownFilesIn(dir string) (bundle.Files, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, usage.Errorf("there is no directory %s; `metalaw policy init %s` begins a bundle", dir, dir)
	}
	if err != nil {
		return nil, err
	}
	m, err := source.Directory(dir)
	if err != nil {
		return nil, err
	}
	if _, ok := m.Files[bundle.BundleFile]; !ok {
		return nil, fmt.Errorf("%s holds no %s; `metalaw policy init` begins a bundle", dir, bundle.BundleFile)
	}
	return m.Files, nil
}

// accepted is the bundle of these files, filled from the default. Where it would not be accepted it tells why; before are the files as
// they were.
func accepted(ctx context.Context, t *terminal.Terminal, dir string, before, files bundle.Files) (*bundle.Bundle, error) {
	b, report, err := policies.Accept(ctx, files)
	if err != nil || b != nil {
		return b, err
	}
	v := verdict{Bundle: source.Of(dir, dir, report.Files), report: report}
	v.text(t, false)
	said := "nothing was written"
	if own := ownTestsFailed(report.Found, before); len(own) > 0 {
		said += fmt.Sprintf("; tests that the bundle had before (%s) do not hold with the policy and the values that are set. If those are as they "+
			"should be, let the tests try something else, such as claims of another namespace; then call this again", strings.Join(own, ", "))
	}
	t.Printf("%s\n", said)
	return nil, terminal.ErrIncomplete
}

// ownTestsFailed are the files of tests that a bundle had before, and of which one does not hold.
func ownTestsFailed(found diag.List, before bundle.Files) []string {
	var own []string
	for _, d := range found {
		if _, had := before[d.File]; had && d.Code == "rego-test-failed" && !slices.Contains(own, d.File) {
			own = append(own, d.File)
		}
	}
	return own
}

// changedIn are the files that are to be written, the kustomization among them, and what there is to say of that. A file that
// manifest.yaml lists has a digest there, which would be wrong then.
func changedIn(dir string, before, files bundle.Files) (changed []content, note string, err error) {
	listed, err := os.ReadFile(filepath.Join(dir, bundle.PartsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	parts := bundle.Parts(string(listed))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if was, there := before[name]; there && bytes.Equal(was, files[name]) {
			continue
		}
		for _, p := range parts {
			if p.Name == name {
				return nil, "", fmt.Errorf("%s: it lists %s, which would change, by its present digest, so nothing was written. "+
					"Take the file out of the list, and put it in again with its new digest afterwards", filepath.Join(dir, bundle.PartsFile), name)
			}
		}
		changed = append(changed, content{filepath.Join(dir, name), files[name]})
	}
	note, listing, err := listFiles(dir, before, files)
	if listing != nil {
		changed = append(changed, *listing)
	}
	return changed, note, err
}

// bundleEntry is the entry of bundle.yaml among the files of a kustomization, as `policy init` writes it.
var bundleEntry = regexp.MustCompile(`(?m)^( *)- bundle\.yaml *\n`)

// listFiles is the kustomization of the directory, which makes the ConfigMap, with new files added to it; nil where it stays as it is.
func listFiles(dir string, before, files bundle.Files) (note string, changed *content, err error) {
	path := filepath.Join(dir, source.KustomizationFile)
	was, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	var fresh []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		listed := regexp.MustCompile(`(?m)^ *- (.*/|.*=)?` + regexp.QuoteMeta(name) + ` *$`).Match(was)
		if _, there := before[name]; !there && !listed {
			fresh = append(fresh, name)
		}
	}
	if len(fresh) == 0 {
		return "", nil, nil
	}
	at := bundleEntry.FindSubmatchIndex(was)
	if at == nil {
		return path + ": add these files to it by hand: " + strings.Join(fresh, ", "), nil, nil
	}
	indent, entries := string(was[at[2]:at[3]]), ""
	for _, name := range fresh {
		entries += indent + "- " + name + "\n"
	}
	return path + ": lists the new files", &content{path, slices.Concat(was[:at[1]], []byte(entries), was[at[1]:])}, nil
}
