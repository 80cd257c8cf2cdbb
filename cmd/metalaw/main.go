// SPDX-License-Identifier: Apache-2.0

// Command metalaw is the operator and its command line in one program. Called as kubectl-metalaw it is a plugin of kubectl.
package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
)

// version is set where images are built.
var version string

func main() {
	root := cli.New(cli.ReadCall(os.Args), newManagerCommand(), newBootCommand(), newVersionCommand())
	v := versions()
	root.Version = v.text()
	root.SetVersionTemplate("{{.Version}}")
	err := root.ExecuteContext(ctrl.SetupSignalHandler())
	if err != nil {
		cli.Complain(os.Stderr, err)
	}
	os.Exit(usage.ExitCode(err))
}

// versioned is what this program is.
type versioned struct {
	Metalaw string `json:"metalaw"`
	Engine  string `json:"engine"`
}

func (v versioned) text() string { return fmt.Sprintf("metalaw %s\nengine  %s\n", v.Metalaw, v.Engine) }

func versions() versioned {
	tell := version
	if info, ok := debug.ReadBuildInfo(); ok && tell == "" {
		tell = info.Main.Version
	}
	return versioned{Metalaw: cmp.Or(tell, "(devel)"), Engine: bundle.EngineVersion}
}

func newVersionCommand() *cobra.Command {
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of its policy engine.",
		Args:  usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, v := terminal.Of(cmd), versions()
			output.Show(t, v, func() { t.Printf("%s", v.text()) })
			return t.Ended(nil)
		},
	}
	output.Register(cmd)
	return cmd
}
