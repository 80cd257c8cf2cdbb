// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of metalaw: every command but the manager, the name by which the program was called, and
// the page that documents them.
package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/bmc"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/claim"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/doctor"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/fleet"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/maintenance"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/migrate"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/policy"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/server"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/status"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/support"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Names by which kubectl calls a plugin, and asks it what a word on the command line may become.
const (
	pluginName     = "kubectl-metalaw"
	completionName = "kubectl_complete-metalaw"
)

// Call is how the program was called.
type Call struct {
	// Plugin says that kubectl called it.
	Plugin bool
	// Args are the arguments for the command.
	Args []string
}

// ReadCall reads the program's arguments, with its own name as the first.
func ReadCall(argv []string) Call {
	if len(argv) == 0 {
		return Call{}
	}
	name := strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
	switch name {
	case pluginName:
		return Call{Plugin: true, Args: argv[1:]}
	case completionName:
		return Call{Plugin: true, Args: append([]string{cobra.ShellCompRequestCmd}, argv[1:]...)}
	default:
		return Call{Args: argv[1:]}
	}
}

// New makes the root command for a call. The commands given are those of the program that are not part of its command
// line proper, such as the manager; a plugin does not show them.
func New(call Call, others ...*cobra.Command) *cobra.Command {
	program := "metalaw"
	if call.Plugin {
		program = "kubectl metalaw"
	}
	root := terminal.Group(&cobra.Command{
		Use:   "metalaw",
		Short: "Bare-metal servers under rules that are data.",
		Long: "Bare-metal servers under rules that are data.\n\nWhat holds servers back, the ways out of a state in which one is stuck, " +
			"why a server is in its state, and why a claim or a maintenance waits. Look at servers and claims with kubectl.\n\n" +
			"Exit codes: 0 done. 1 not everything was done. 2 the command line makes no sense; of status and " +
			"doctor also: " +
			"it cannot be told.",
		Example: "  {{.}} status\n  {{.}} explain server NAME\n  {{.}} explain claim NAME -n NAMESPACE\n" +
			"  {{.}} server retry NAME --reason 'DIMM replaced' --wait\n  {{.}} freeze --reason 'many servers in Error'",
		SilenceUsage:  true,
		SilenceErrors: true,
	}, "command", "--help")
	if call.Plugin {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: program}
	}
	root.SetArgs(call.Args)
	root.SetFlagErrorFunc(usage.FlagError)
	root.AddCommand(server.Command(program))
	root.AddCommand(status.Command())
	root.AddCommand(fleet.Commands()...)
	root.AddCommand(claim.Commands(server.ExplainCommand, maintenance.ExplainCommand)...)
	root.AddCommand(maintenance.Command(program))
	root.AddCommand(policy.Command(program))
	root.AddCommand(migrate.Command(program))
	root.AddCommand(bmc.Command(program), doctor.Command(), support.Command())
	for _, other := range others {
		other.Hidden = other.Hidden || call.Plugin
		root.AddCommand(other)
	}
	root.AddCommand(referenceCommand(), optionsCommand())
	shortHelp(root, program)
	name(root, program)
	return root
}

// name writes into the examples of a command, and of those below it, how the user calls this program.
func name(cmd *cobra.Command, program string) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "{{.}}", program)
	for _, below := range cmd.Commands() {
		name(below, program)
	}
}

// Complain tells an error that the output has not told of already.
func Complain(w io.Writer, err error) {
	if errors.Is(err, terminal.ErrIncomplete) || errors.Is(err, terminal.ErrUnknown) {
		return
	}
	fmt.Fprintln(w, "metalaw:", err) //nolint:errcheck // There is nobody left to tell.
}
