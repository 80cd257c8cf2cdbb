// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// ExplainCommand is `metalaw explain server`.
func ExplainCommand(flags *access.Flags) *cobra.Command {
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "server NAME",
		Short: "Say why a server is in its state, what holds it, and what would lead out",
		Long: "Shows what is stored of a server: its state, the rule that led there, the next deadline, the condition that says what holds " +
			"it, the operation and the power request, the revision that governs it, marks, retries, freezes, budgets and the last moves.\n\n" +
			"It shows each rule that leads out of the state, with the names that the rule asks for and their values. The command does " +
			"not ask the BMC: what only the BMC can tell is unknown here.\n\n" +
			"It reads with your own rights. Where a right is missing, the command names it and goes on.\n\n" +
			"Exit codes: 0 explained; 1 the server or the cluster could not be read; 2 the command line makes no sense.",
		Example: "  {{.}} explain server node-1\n  {{.}} explain server node-1 -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("name one server; see --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t := terminal.Of(cmd)
			c, err := flags.Connect(t.Err)
			if err != nil {
				return err
			}
			now := time.Now()
			e, err := explain(cmd.Context(), c, args[0], now)
			if err != nil {
				return err
			}
			if output.Structured() {
				return output.Write(t.Out, e)
			}
			return (&page{Terminal: t, now: now}).explained(e)
		},
		ValidArgsFunction: completeOne(flags),
	}
	output.Register(cmd)
	return cmd
}

// completeOne offers servers until one is named.
func completeOne(flags *access.Flags) cobra.CompletionFunc {
	names := completeNames(flags)
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd, given, prefix)
	}
}
