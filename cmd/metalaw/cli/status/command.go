// SPDX-License-Identifier: Apache-2.0

// Package status shows a fleet at one look. Its command lists what is stored and prints what controllers/fleet/overview
// answers.
package status

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/fleet/overview"
)

// request is what the command line asks for.
type request struct {
	watch     bool
	namespace string
	output    terminal.Output
}

// Command is `metalaw status`.
func Command() *cobra.Command {
	flags, r := &access.Flags{}, &request{}
	cmd := &cobra.Command{
		Use:   "status [--watch]",
		Short: "Show the state of the fleet on one screen",
		Long: "Shows what is not well and since when, where the servers are, and why claims wait. Shows which policy " +
			"governs, what a shadow would do otherwise, and what happened last. Shows what is held back, and which " +
			"maintenances wait. " +
			"The screen has 24 lines for any fleet; -o json and -o yaml show everything.\n\n" +
			"It lists objects in pages, and asks for no server by itself. The mode of the manager is in the Leases of the " +
			"managers. To read them takes the Role metalaw-fleet-viewer in their namespace, beside the ClusterRole of " +
			"that name. With --watch it watches the objects, and shows the screen anew when something changes, until it " +
			"is interrupted.\n\n" +
			"Exit codes: 0 it is well. 1 something needs a person. 2 it cannot be told, because the cluster does not " +
			"answer or rights are missing; or the command line makes no sense.",
		Example: "  {{.}} status\n\n  # Every server that is not well, with its reason\n" +
			"  {{.}} status -o json | jq -r '.notWell[] | [.name, .reason, .message] | @tsv'",
		Args: usage.NoArgs,
		RunE: terminal.Run(func(ctx context.Context, t *terminal.Terminal, _ []string) error {
			return r.run(ctx, t, flags)
		}),
	}
	flags.Register(cmd)
	cmd.Flags().BoolVarP(&r.watch, "watch", "w", false, "show the screen anew when something changes")
	cmd.Flags().StringVarP(&r.namespace, "namespace", "n", "metalaw-system", "the manager's namespace")
	r.output.Register(cmd)
	return cmd
}

func (r *request) run(ctx context.Context, t *terminal.Terminal, flags *access.Flags) error {
	c, err := flags.Connect(t.Err)
	if err != nil {
		return usage.Unknown(err)
	}
	in, err := gather(ctx, live{c}, r.namespace, nil)
	if err != nil {
		return usage.Unknown(err)
	}
	if r.watch {
		return r.follow(ctx, t, flags, live{c}, in)
	}
	return r.show(t, in, t.Now)
}

// show prints the answers; its error is the exit code.
func (r *request) show(t *terminal.Terminal, in overview.Input, now time.Time) error {
	in.Now, t.Now = now, now
	a := overview.Of(in)
	r.output.Show(t, a, func() {
		if r.watch {
			t.Clear()
		}
		for _, line := range screen(&a, t.Width()) {
			t.Printf("%s\n", line)
		}
	})
	return verdict(a.Verdict)
}

// verdict is the exit code of an answer, as an error of which the output has told.
func verdict(v overview.Verdict) error {
	switch v {
	case overview.NeedsPerson:
		return terminal.ErrIncomplete
	case overview.Unknown:
		return terminal.ErrUnknown
	case overview.Well:
		return nil
	}
	return nil
}

// live reads from the API server, in pages.
type live struct{ client.Reader }
