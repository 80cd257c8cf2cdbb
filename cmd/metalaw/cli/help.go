// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// usageTemplate is cobra's, but that the flags for the cluster are left to `metalaw options`.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Available Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{with ownFlags .}}

Flags:
{{.}}{{end}}{{if connects .}}

"{{options .}}" shows the flags for the cluster, such as --kubeconfig and --context.{{end}}{{if
.HasAvailableSubCommands}}

Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}
`

// shortHelp keeps the flags for the cluster out of the help of every command.
func shortHelp(root *cobra.Command, program string) {
	cobra.AddTemplateFunc("ownFlags", func(cmd *cobra.Command) string {
		return strings.TrimRight(split(cmd, false).FlagUsages(), " \n")
	})
	cobra.AddTemplateFunc("connects", func(cmd *cobra.Command) bool { return split(cmd, true).HasFlags() })
	cobra.AddTemplateFunc("options", func(*cobra.Command) string { return program + " options" })
	root.SetUsageTemplate(usageTemplate)
}

// split are the flags of a command that name the cluster, or the others.
func split(cmd *cobra.Command, connection bool) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	add := func(f *pflag.Flag) {
		if access.IsConnection(f) == connection {
			flags.AddFlag(f)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return flags
}

// optionsCommand shows the flags for the cluster, as `kubectl options` does.
func optionsCommand() *cobra.Command {
	shown := &cobra.Command{}
	(&access.Flags{}).Register(shown)
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "options",
		Short: "Show the flags for the cluster, which every command that works on one takes",
		Args:  usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := terminal.Of(cmd)
			output.Show(t, described(shown.PersistentFlags()), func() {
				t.Printf("Flags for the cluster and the user, as kubectl has them:\n\n%s",
					shown.PersistentFlags().FlagUsages())
			})
			return t.Ended(nil)
		},
	}
	output.Register(cmd)
	return cmd
}

// option is one flag, for other programs.
type option struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default string `json:"default,omitempty"`
	Meaning string `json:"meaning"`
}

func described(flags *pflag.FlagSet) []option {
	var all []option
	flags.VisitAll(func(f *pflag.Flag) {
		all = append(all, option{Name: f.Name, Type: f.Value.Type(), Default: f.DefValue, Meaning: f.Usage})
	})
	return all
}
