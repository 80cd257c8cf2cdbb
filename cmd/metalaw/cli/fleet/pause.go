// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/freeze"
)

// pausedName begins the name of a freeze that pauses maintenances.
const pausedName = "maintenance-paused"

// PauseCommand is `metalaw maintenance pause`. underWay shows what holds servers of a selection now.
func PauseCommand(flags *access.Flags, underWay func(context.Context, *terminal.Terminal, client.Reader, labels.Selector)) *cobra.Command {
	r := &freezeRequest{level: string(policyv1alpha1.FreezeMaintenance)}
	var wanted policyv1alpha1.Freeze
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "pause --reason TEXT [-l SELECTOR] [--for DURATION | --until TIME]",
		Short: "Hold back new grants of maintenances, and the next steps of those under way",
		Long: "Adds a freeze of level Maintenance to FleetControl \"fleet\". While it stands, no maintenance gets one of the servers that it " +
			"covers. A maintenance that holds its server keeps it, and the manager takes no next step: it neither switches the machine nor " +
			"prepares a boot. Everything else goes on, such as claims and wipes. The command shows what is under way.\n\n" +
			"Exit codes: 0 maintenances are paused. 1 it could not be stored. 2 the command line makes no sense.",
		Example: "  {{.}} maintenance pause --reason 'INC-1301: nodes do not come back'\n\n" +
			"  {{.}} maintenance pause -l rack=r1 --for 4h --reason 'rack r1 moves'",
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if err := usage.NoArgs(cmd, args); err != nil {
				return err
			}
			r.bounded = cmd.Flags().Changed("for")
			wanted, err = r.freeze(time.Now())
			return err
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			wanted.By = flags.WhoAmI(ctx, c)
			stored, stood, err := pause(ctx, c, wanted, t.Now)
			if err != nil {
				return err
			}
			output.Show(t, stored, func() {
				words := "paused: "
				if stood {
					words = "paused already: "
				}
				t.Printf("%s\n", terminal.Plain(words+freeze.Words(&stored)))
				underWay(ctx, t, c, freeze.Selector(stored.Selector))
			})
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&r.selector, "selector", "l", "", "labels of the servers; every server where it is left out")
	f.StringVar(&r.reason, "reason", "", "why; required, and shown to all users who wait")
	f.DurationVar(&r.lasts, "for", 0, "how long it lasts, such as 2h; for ever where neither this nor --until is given")
	f.StringVar(&r.until, "until", "", "when it ends: 2026-01-31T18:00:00Z, or 2026-01-31 18:00 or 18:00 in the time of this machine")
	output.Register(cmd)
	return cmd
}

// pause stores a freeze that pauses maintenances; one that stands for the same servers is not stored twice.
func pause(ctx context.Context, c client.Client, wanted policyv1alpha1.Freeze, now time.Time) (stored policyv1alpha1.Freeze, stood bool, err error) {
	err = edit(ctx, c, func(control *policyv1alpha1.FleetControl) (bool, error) {
		stored, stood, err = addPause(control, wanted, now)
		return !stood, err
	})
	return stored, stood, err
}

func addPause(c *policyv1alpha1.FleetControl, wanted policyv1alpha1.Freeze, now time.Time) (stored policyv1alpha1.Freeze, stood bool, err error) {
	old := lists.Find(c.Spec.Freezes, func(f *policyv1alpha1.Freeze) bool {
		return isPause(f) && !freeze.Ended(f, now) && sameServers(f, &wanted) && f.Until.Equal(wanted.Until)
	})
	if old != nil {
		return *old, true, nil
	}
	wanted.Name = freeName(pausedName, func(name string) bool {
		f := find(c, name)
		return f != nil && !freeze.Ended(f, now)
	})
	stored, _, err = add(c, wanted, now)
	return stored, false, err
}

// isPause says that a freeze was made by pause.
func isPause(f *policyv1alpha1.Freeze) bool {
	return f.Level == policyv1alpha1.FreezeMaintenance && strings.HasPrefix(f.Name, pausedName)
}

func sameServers(a, b *policyv1alpha1.Freeze) bool {
	return freeze.Selector(a.Selector).String() == freeze.Selector(b.Selector).String()
}

// ResumeCommand is `metalaw maintenance resume`.
func ResumeCommand(flags *access.Flags) *cobra.Command {
	r := &freezeRequest{level: string(policyv1alpha1.FreezeMaintenance), reason: "resume"}
	var like policyv1alpha1.Freeze
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "resume [-l SELECTOR]",
		Short: "Let maintenances go on that were paused",
		Long: "Takes the freeze off FleetControl \"fleet\" that `maintenance pause` stored with the same selector. Without -l it is the one for " +
			"every server. Pauses for other servers stay, and the command names them.\n\n" +
			"Exit codes: 0 no such pause stands any more. 1 it could not be stored. 2 the command line makes no sense.",
		Example: "  {{.}} maintenance resume\n  {{.}} maintenance resume -l rack=r1",
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if err := usage.NoArgs(cmd, args); err != nil {
				return err
			}
			like, err = r.freeze(time.Now())
			return err
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			resumed, left, err := resume(ctx, c, &like, t.Now)
			if err != nil {
				return err
			}
			output.Show(t, map[string][]string{"resumed": resumed, "left": left}, func() {
				if len(resumed) == 0 {
					resumed = []string{"nothing: no such pause stands"}
				}
				for _, words := range resumed {
					t.Printf("resumed %s\n", terminal.Plain(words))
				}
				for _, words := range left {
					t.Printf("still held back by %s\n", terminal.Plain(words))
				}
			})
			return nil
		}),
	}
	cmd.Flags().StringVarP(&r.selector, "selector", "l", "", "the selector that the pause has; none is the pause for every server")
	output.Register(cmd)
	return cmd
}

// resume takes the pauses off that have the selector of another one, and says in words which, and what else holds maintenances back.
func resume(ctx context.Context, c client.Client, like *policyv1alpha1.Freeze, now time.Time) (resumed, left []string, err error) {
	err = edit(ctx, c, func(control *policyv1alpha1.FleetControl) (bool, error) {
		resumed, left = liftPause(control, like, now)
		return len(resumed) > 0, nil
	})
	return resumed, left, err
}

func liftPause(c *policyv1alpha1.FleetControl, like *policyv1alpha1.Freeze, now time.Time) (resumed, left []string) {
	resumed, left = []string{}, []string{}
	c.Spec.Freezes = slices.DeleteFunc(c.Spec.Freezes, func(f policyv1alpha1.Freeze) bool {
		goes := isPause(&f) && sameServers(&f, like)
		switch {
		case goes:
			resumed = append(resumed, freeze.Words(&f))
		case !freeze.Ended(&f, now):
			left = append(left, withServers(&f))
		}
		return goes
	})
	return resumed, left
}

// withServers are the words of a freeze, with its selector.
func withServers(f *policyv1alpha1.Freeze) string {
	if selector := freeze.Selector(f.Selector); !selector.Empty() {
		return fmt.Sprintf("%s, for servers with %s", freeze.Words(f), selector)
	}
	return freeze.Words(f)
}
