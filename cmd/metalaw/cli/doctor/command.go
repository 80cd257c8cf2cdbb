// SPDX-License-Identifier: Apache-2.0

// Package doctor checks an installation from a workstation. Its command reads a live cluster and stores nothing.
package doctor

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Command is `metalaw doctor`.
func Command() *cobra.Command {
	flags := &access.Flags{}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation, and say what is wrong and what to do",
		Long: "Checks CRDs, the manager and its leader, the rights of its service account, certificates, admission, the boot service, BMCs, " +
			"and whether the API server encrypts BMCSecrets. It lists the subjects that may write " +
			"where a password goes and lack the right. It shows which maintenances a manager with --maintenance=on would act on, " +
			"which wait for adoption, and which servers another program holds. It lists servers with storage that no disk shows, and which " +
			"protections of wipes the revisions in force lack, and says whether a policy governs. " +
			"It stores nothing: admission is asked by a dry run. " +
			"What your rights do not show is reported as unknown.\n\n" +
			"Exit codes: 0 nothing failed. 1 a check failed, or something is missing. 2 no check could be made, " +
			"because the " +
			"cluster does not answer or rights are missing; or the command line makes no sense.",
		Example: "  {{.}} doctor",
		Args:    usage.NoArgs,
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			from := reader{Client: c, raw: flags.Raw}
			if err := from.answers(ctx); err != nil {
				return err
			}
			return show(t, judge(from.read(ctx, time.Now())), output)
		}),
	}
	flags.Register(cmd)
	output.Register(cmd)
	return cmd
}

// show writes the findings; its error is the exit code.
func show(t *terminal.Terminal, found []finding, output terminal.Output) error {
	rows := make([][]string, 0, len(found))
	for _, f := range found {
		words := f.Message
		if f.Remedy != "" {
			words += ". Remedy: " + f.Remedy
		}
		rows = append(rows, []string{f.Check, string(f.Verdict), terminal.Plain(words)})
	}
	output.Show(t, found, func() { t.Table([]string{"CHECK", "RESULT", ""}, rows) })
	return ended(found)
}
