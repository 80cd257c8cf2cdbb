// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Command is `metalaw server` with its verbs; program is how the user calls this program.
func Command(program string) *cobra.Command {
	flags := &access.Flags{}
	var group *cobra.Command
	group = &cobra.Command{
		Use:   "server",
		Short: "Ask something of servers: retry, release, force, declare-clean, park, unpark, cordon, uncordon",
		Long: "The ways out of a state in which a server is stuck, and what keeps servers away from claims. Each verb stores a request on the " +
			"Server, with the reason; admission records who asked; the manager takes it in, does it or refuses it, and says so in " +
			"status.operation or in an Event.\n\n" +
			"Exit codes: 0 all done (or asked, without --wait); 1 something was refused, failed, did not end in time, or nothing matched; " +
			"2 the command line makes no sense, or a confirmation was needed and nobody was there to give it.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage.Errorf("there is no verb %q%s", args[0], terminal.Suggest(group, args[0], program+" server --help"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags.Register(group)
	for _, v := range verbs {
		group.AddCommand(v.command(flags, program))
	}
	return group
}

func (v verb) command(flags *access.Flags, program string) *cobra.Command {
	r := request{verb: v}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:     v.usage(),
		Short:   v.short,
		Long:    v.long,
		Example: strings.ReplaceAll(v.example, "{{.}}", program),
		RunE: func(cmd *cobra.Command, names []string) error {
			r.names, r.timed = names, cmd.Flags().Changed("timeout")
			if err := r.check(); err != nil {
				return err
			}
			t := terminal.Of(cmd)
			c, err := flags.Connect(t.Err)
			if err != nil {
				return err
			}
			one := &run{request: r, client: c, terminal: t,
				report: &report{terminal: t, output: output, dryRun: r.dryRun, verb: v.name}}
			return one.do(cmd.Context())
		},
		ValidArgsFunction: completeNames(flags),
	}
	v.flags(cmd, &r)
	output.Register(cmd)
	return cmd
}

func (v verb) usage() string {
	words := v.name + " [NAME...] [(-l SELECTOR | --all) [--state STATE]] --reason TEXT"
	if v.operation == v1alpha1.OperationForce {
		words += " --to STATE [--override-safety]"
	}
	return words
}

func (v verb) flags(cmd *cobra.Command, r *request) {
	f := cmd.Flags()
	f.StringVarP(&r.selector, "selector", "l", "", "labels of the servers, such as 'rack=r1,model in (a, b)'")
	f.BoolVar(&r.all, "all", false, "every server")
	f.StringVar(&r.state, "state", "", "with -l or --all: only servers in this state")
	f.StringVar(&r.reason, "reason", "", "why; required, and kept with the request")
	f.BoolVar(&r.dryRun, "dry-run", false, "ask the API server and its admission, and store nothing")
	f.BoolVarP(&r.yes, "yes", "y", false, "do not ask for a confirmation")
	// The error is about a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("state", completeStates())
	if v.operation != "" {
		forced := v.operation == v1alpha1.OperationForce
		f.BoolVar(&r.wait, "wait", forced, "wait until the manager has ended it, and say how")
		f.DurationVar(&r.timeout, "timeout", 5*time.Minute, "how long --wait waits")
	}
	if v.operation == v1alpha1.OperationForce {
		v.forceFlags(cmd, r)
	}
}

func (verb) forceFlags(cmd *cobra.Command, r *request) {
	cmd.Flags().StringVar(&r.to, "to", "", "state that the server is forced into; required")
	cmd.Flags().BoolVar(&r.override, "override-safety", false, "set safety rules aside that guard data, where that is what it takes; recorded")
	// The error is about a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("to", completeStates())
}

// completeStates offers the states of the default bundle; another one may define more.
func completeStates() cobra.CompletionFunc {
	states := []v1alpha1.ServerState{v1alpha1.StateInitial, v1alpha1.StateObserving, v1alpha1.StateDiscovery, v1alpha1.StateAvailable,
		v1alpha1.StateReserved, v1alpha1.StateReleased, v1alpha1.StateCleanup, v1alpha1.StateMaintenance, v1alpha1.StateParked, v1alpha1.StateError}
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// completionLimit is how long a shell waits for names.
const completionLimit = 3 * time.Second

// completeNames offers the servers that begin with what is typed, with their states.
func completeNames(flags *access.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		c, err := flags.Connect(cmd.ErrOrStderr())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return serverNames(ctx, c, given, prefix)
	}
}

func serverNames(ctx context.Context, c client.Reader, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var list v1alpha1.ServerList
	if err := c.List(ctx, &list); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for i := range list.Items {
		s := &list.Items[i]
		if strings.HasPrefix(s.Name, prefix) && !slices.Contains(given, s.Name) {
			names = append(names, cobra.CompletionWithDesc(s.Name, shown(string(s.Status.State))))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
