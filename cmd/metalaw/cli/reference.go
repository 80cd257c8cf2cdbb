// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// documented are the commands that the reference describes, in its order.
var documented = []string{"status", "server", "explain", "claim", "freeze", "unfreeze", "fleet", "maintenance",
	"policy", "migrate", "bmc", "doctor",
	"support-bundle"}

// referenceCommand prints the reference of the commands in Markdown, for the documentation.
func referenceCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "reference",
		Short:  "Print the reference of the commands in Markdown.",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), reference(cmd.Root()))
			return err
		},
	}
}

func reference(root *cobra.Command) string {
	var out strings.Builder
	var cluster *pflag.FlagSet
	for _, name := range documented {
		cmd, _, err := root.Find([]string{name})
		if err != nil {
			continue
		}
		if cmd.PersistentFlags().HasFlags() {
			cluster = cmd.PersistentFlags()
		}
		describe(&out, cmd)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				describe(&out, sub)
			}
		}
	}
	out.WriteString("## Flags for the cluster\n\nEvery command above that works on a cluster takes these, as kubectl does.\n\n")
	flagTable(&out, cluster)
	return out.String()
}

func describe(out *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(out, "## %s\n\n%s.\n\n", cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
	if cmd.Long != "" {
		fmt.Fprintf(out, "%s\n\n", cmd.Long)
	}
	if !cmd.HasSubCommands() {
		fmt.Fprintf(out, "```\n%s\n```\n\n", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	}
	if cmd.Example != "" {
		fmt.Fprintf(out, "```sh\n%s\n```\n\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			own.AddFlag(f)
		}
	})
	flagTable(out, own)
}

func flagTable(out *strings.Builder, flags *pflag.FlagSet) {
	if flags == nil || !flags.HasFlags() {
		return
	}
	out.WriteString("| flag | type | default | meaning |\n|---|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value := ""
		if f.DefValue != "" && f.DefValue != "[]" {
			value = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", name, typeWords(f), value, f.Usage)
	})
	out.WriteString("\n")
}

func typeWords(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "string":
		return "text"
	case "stringArray", "stringSlice":
		return "list"
	default:
		return strings.ReplaceAll(f.Value.Type(), "|", " or ")
	}
}
