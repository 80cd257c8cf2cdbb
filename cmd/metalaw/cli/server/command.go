// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Command is `metalaw server` with its verbs; program is how the user calls this program.
func Command(program string) *cobra.Command {
	flags := &access.Flags{}
	group := terminal.Group(&cobra.Command{
		Use:   "server",
		Short: "Ask something of servers: retry, release, force, declare-clean, park, unpark, cordon, uncordon",
		Long: "The ways out of a state in which a server is stuck, and what keeps servers away from claims. Each verb stores a request on the " +
			"Server, with the reason; admission records who asked; the manager takes it in, does it or refuses it, and says so in " +
			"status.operation or in an Event.\n\n" +
			"Exit codes: 0 all done (or asked, without --wait); 1 something was refused, failed, did not end in time, or nothing matched; " +
			"2 the command line makes no sense, or a confirmation was needed and nobody was there to give it.",
	}, "verb", program+" server --help")
	flags.Register(group)
	for _, v := range verbs {
		group.AddCommand(v.command(flags))
	}
	return group
}

func (v verb) command(flags *access.Flags) *cobra.Command {
	r := request{verb: v}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:     v.usage(),
		Short:   v.short,
		Long:    v.long,
		Example: v.example,
		Args: func(cmd *cobra.Command, names []string) error {
			r.names, r.timed = names, cmd.Flags().Changed("timeout")
			return r.check()
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			one := &run{request: r, client: c, report: &report{terminal: t, output: output, dryRun: r.dryRun, verb: v.name}}
			return one.do(ctx)
		}),
		ValidArgsFunction: flags.Complete(0, serverNames),
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
	terminal.Offer(cmd, "state", states)
	forced := v.operation == v1alpha1.OperationForce
	if v.operation != "" {
		f.BoolVar(&r.wait, "wait", forced, "wait until the manager has ended it, and say how")
		f.DurationVar(&r.timeout, "timeout", 5*time.Minute, "how long --wait waits")
	}
	if forced {
		f.StringVar(&r.to, "to", "", "state that the server is forced into; required")
		f.BoolVar(&r.override, "override-safety", false, "set safety rules aside that guard data, where that is what it takes; recorded")
		terminal.Offer(cmd, "to", states)
	}
}

// states are those of the default bundle; another one may define more.
var states = []string{string(v1alpha1.StateInitial), string(v1alpha1.StateObserving), string(v1alpha1.StateDiscovery), string(v1alpha1.StateAvailable),
	string(v1alpha1.StateReserved), string(v1alpha1.StateReleased), string(v1alpha1.StateCleanup), string(v1alpha1.StateMaintenance),
	string(v1alpha1.StateParked), string(v1alpha1.StateError)}

// serverNames are the servers with their states, for a shell.
func serverNames(ctx context.Context, c client.Client) ([]string, error) {
	var list v1alpha1.ServerList
	err := c.List(ctx, &list)
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = cobra.CompletionWithDesc(list.Items[i].Name, cmp.Or(string(list.Items[i].Status.State), "-"))
	}
	return names, err
}
