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

// version is set where images are built.
var version string

func main() {
	root := cli.New(cli.ReadCall(os.Args), newManagerCommand(), newVersionCommand())
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
			tell := version
			if info, ok := debug.ReadBuildInfo(); ok && tell == "" {
				tell = info.Main.Version
			}
			if tell == "" {
				tell = "(devel)"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "metalaw %s\nengine  %s\n", tell, bundle.EngineVersion)
			return err
		},
	}
}
