// SPDX-License-Identifier: Apache-2.0

// Command metalaw is the operator and its command line in one program. Called as kubectl-metalaw it is a plugin of kubectl.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli"
	"github.com/metalaw/metalaw/engine/bundle"
)

func main() {
	root := cli.New(cli.ReadCall(os.Args), newManagerCommand(), newBootCommand(), newVersionCommand())
	err := root.ExecuteContext(ctrl.SetupSignalHandler())
	if err != nil {
		cli.Complain(os.Stderr, err)
	}
	os.Exit(usage.ExitCode(err))
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of its policy engine.",
		Args:  usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version := "(devel)"
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
				version = info.Main.Version
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "metalaw %s\nengine  %s\n", version, bundle.EngineVersion)
			return err
		},
	}
}
