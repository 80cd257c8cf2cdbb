// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

const verifyLong = "Holds a bundle to all that the manager holds it to before it may govern: strict parsing, types, limits, " +
	"static verification of the " +
	"lifecycle, the bundle's own scenarios and Rego tests, and their coverage. All problems are told at once, each with its place, its " +
	"cause and its remedy. What the bundle leaves out is taken from the built-in default. A kustomization.yaml is not read: " +
	"`kubectl kustomize` says what it makes, and -f - verifies that.\n\n" +
	"With --live it holds the PolicyRevisions to that which the cluster has in use, with what they hold and nothing else: before an " +
	"upgrade, the new version of this program says which of them a manager of that version would hold.\n\n" +
	"--examples overwrites no file: one that is there already is refused before anything is judged, and where there is nothing to write " +
	"none is made.\n\n" +
	"Exit codes: 0 the bundle, or every one in use, could be accepted; 1 it could not, or the cluster did not answer; " +
	"2 the command line makes no sense."

func verifyCommand() *cobra.Command {
	var e examination
	var notes, live bool
	var examples string
	flags := &access.Flags{}
	cmd := &cobra.Command{
		Use:   "verify (-f DIR|FILE|- | --from BUNDLE | --live)",
		Short: "Say whether a bundle could be accepted, and everything that is wrong with it",
		Long:  verifyLong,
		Example: "  {{.}} policy verify -f ./fleet\n  kubectl kustomize ./fleet | {{.}} policy verify -f -\n" +
			"  {{.}} policy verify -f ./fleet -o sarif >fleet.sarif\n  {{.}} policy verify --live",
		Args: usage.NoArgs,
	}
	e.register(cmd, terminal.Text, terminal.AsJSON, terminal.AsYAML, terminal.AsSARIF)
	cmd.Flags().BoolVar(&notes, "notes", false, "also say what is merely worth knowing, such as where the order of two rules decides")
	cmd.Flags().StringVar(&examples, "examples", "", "also write the facts by which verification's findings show to a new file, as scenarios; "+
		"of notes with --notes")
	_ = cmd.MarkFlagFilename("examples", "yaml") // the error is about a flag that does not exist
	cmd.Flags().BoolVar(&live, "live", false, "verify the PolicyRevisions that the cluster has in use")
	flags.Register(cmd)
	cmd.RunE = terminal.Run(func(ctx context.Context, t *terminal.Terminal, _ []string) error {
		if live {
			if err := e.checkLive(examples); err != nil {
				return err
			}
			c, err := flags.Connect(t.Err)
			if err != nil {
				return err
			}
			return e.verifyLive(ctx, t, c, notes)
		}
		if err := examplesFile(examples).check(t); err != nil {
			return err
		}
		v, err := e.examine(ctx, t)
		if err != nil {
			return err
		}
		if err := examplesFile(examples).write(t, v.examples(notes)); err != nil {
			return err
		}
		if v.report.Found = append(v.report.Found, v.Labels...); v.Labels.HasErrors() {
			v.bundle = nil
		}
		return e.tell(t, v, v.bundle != nil, func() {
			v.text(t, notes)
			if command := v.Kustomized(); command != "" {
				t.Printf("the kustomization of the directory was not read; to verify what it makes: %s\n", command)
			}
		})
	})
	return cmd
}
