// SPDX-License-Identifier: Apache-2.0

// Package policy is `metalaw policy`: what an author of bundles does at a desk (start, verify, test, draw), with the engine
// of the manager and without a cluster, and what an operator does in a cluster (promote, roll back, look back).
package policy

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Command is `metalaw policy` with its verbs; program is how the user calls this program.
func Command(program string) *cobra.Command {
	var group *cobra.Command
	group = &cobra.Command{
		Use:   "policy",
		Short: "Write, verify, test, draw and roll out policy bundles",
		Long: "A policy bundle says what a server may do next, which server a claim gets, what is refused at admission, and what a MAC address " +
			"tells. init, add, verify, test, render, schema and vap need no cluster: they use the engine that the manager uses, so that what they " +
			"accept is accepted there. verify --live, promote, rollback and history work on the bundles in a cluster.\n\n" +
			"Exit codes: 0 done, and where a bundle was looked at, it could be accepted; 1 it could not, something failed, or it was interrupted; " +
			"2 the command line makes no sense.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage.Errorf("there is no verb %q%s", args[0], terminal.Suggest(group, args[0], program+" policy --help"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(initCommand(), addCommand(), verifyCommand(), testCommand(), renderCommand(), schemaCommand(), vapCommand(),
		promoteCommand(), rollbackCommand(), historyCommand())
	for _, verb := range group.Commands() {
		readsOne(verb)
		verb.Example = strings.ReplaceAll(verb.Example, "{{.}}", program)
	}
	return group
}
