// SPDX-License-Identifier: Apache-2.0

// Package maintenance holds the commands about ServerMaintenances: they list, explain, approve, plan, pause and abort them. The manager
// grants; each command reads what is stored, or stores what a user asks for.
package maintenance

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/fleet"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Command is `metalaw maintenance`; program is how the user calls this program.
func Command(program string) *cobra.Command {
	flags := &access.Flags{}
	group := terminal.Group(&cobra.Command{
		Use:   "maintenance",
		Short: "Look at maintenances of servers, and steer them: list, approve, plan, pause, resume, abort",
		Long: "A ServerMaintenance asks for a server for work on it, and its maker deletes it when the work is done. The manager grants the " +
			"server by the policy in force: consent, windows, limits, waves and checks. These commands show what waits and why, " +
			"give consent, and hold grants back.",
	}, "command", program+" maintenance --help")
	flags.Register(group)
	group.AddCommand(listCommand(flags), approveCommand(flags), planCommand(flags),
		fleet.PauseCommand(flags, underWay), fleet.ResumeCommand(flags), abortCommand(flags))
	return group
}

// scope is the namespace that a command line names.
type scope struct {
	namespace string
	all       bool
}

func (s *scope) register(cmd *cobra.Command, all bool) {
	cmd.Flags().StringVarP(&s.namespace, "namespace", "n", "",
		"namespace of the maintenance; that of the kubeconfig's context where it is left out")
	if all {
		cmd.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, "the maintenances of all namespaces")
	}
}

// in is the namespace; empty for all of them.
func (s *scope) in(flags *access.Flags) (string, error) {
	if s.all {
		return "", nil
	}
	return flags.Namespace(s.namespace)
}

// complete offers the names of the maintenances in the namespace.
func (s *scope) complete(flags *access.Flags) cobra.CompletionFunc {
	return flags.Complete(1, func(ctx context.Context, c client.Client) ([]string, error) {
		in, err := s.in(flags)
		if err != nil {
			return nil, err
		}
		var list v1alpha1.ServerMaintenanceList
		err = c.List(ctx, &list, client.InNamespace(in))
		return lists.Map(list.Items, func(m *v1alpha1.ServerMaintenance) string {
			return cobra.CompletionWithDesc(m.Name, m.Spec.ServerRef.Name)
		}), err
	})
}
