// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/freeze"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

// Commands are `metalaw freeze`, `unfreeze`, `restored` and `fleet`.
func Commands() []*cobra.Command {
	flags := &access.Flags{}
	group := terminal.Group(&cobra.Command{Use: "fleet", Short: "Look at what holds the fleet back"}, "command", "--help")
	flags.Register(group)
	group.AddCommand(statusCommand(flags))
	return []*cobra.Command{freezeCommand(), unfreezeCommand(), restoredCommand(), group}
}

func freezeCommand() *cobra.Command {
	flags, r := &access.Flags{}, &freezeRequest{}
	var wanted policyv1alpha1.Freeze
	var timeout time.Duration
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "freeze --reason TEXT [-l SELECTOR] [--level Destructive|All] [--for DURATION | --until TIME] [--name NAME]",
		Short: "Hold back what would be done to machines",
		Long: "Adds a freeze to FleetControl \"fleet\", and makes that where there is none. Level Destructive holds back whatever stops a machine " +
			"or erases data: wipes, power-off, resets. Level All holds back everything that reaches a machine or changes what it " +
			"boots. What is begun already is not cut off. Deadlines do not run while a server is held back, and its condition Withheld says why. " +
			"A freeze ends when a user unfreezes it, or by itself at --until or after --for.\n\n" +
			"The command returns when the leading manager has acknowledged the freeze: from then on no act on a machine begins that it holds " +
			"back. It lists what is in flight on the servers. Where no manager runs, give --timeout 0.\n\n" +
			"Exit codes: 0 the freeze holds; with --timeout 0, it is stored. 1 it could not be stored, the name is taken, or no manager " +
			"acknowledged it in time. 2 the command line makes no sense.",
		Example: "  # Everything that stops machines or erases disks, in one rack, for two hours\n" +
			"  {{.}} freeze -l rack=r1 --for 2h --reason 'switch upgrade in rack r1'\n\n" +
			"  # The whole fleet, all of it, until a user unfreezes it\n" +
			"  {{.}} freeze --level All --reason 'INC-1204: wrong bundle' --name inc-1204",
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if err := usage.NoArgs(cmd, args); err != nil {
				return err
			}
			r.bounded = cmd.Flags().Changed("for")
			if timeout < 0 {
				return usage.Errorf("--timeout must not be negative; 0 does not wait")
			}
			wanted, err = r.freeze(time.Now())
			return err
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			wanted.By = flags.WhoAmI(ctx, c)
			return addFreeze(ctx, c, t, wanted, timeout, output)
		}),
	}
	flags.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&r.level, "level", string(policyv1alpha1.FreezeDestructive), "what is held back: Maintenance, Destructive or All")
	f.StringVarP(&r.selector, "selector", "l", "", "labels of the servers; every server where it is left out")
	f.StringVar(&r.reason, "reason", "", "why; required, and shown to all users who wait")
	f.DurationVar(&r.lasts, "for", 0, "how long it lasts, such as 2h; for ever where neither this nor --until is given")
	f.StringVar(&r.until, "until", "", "when it ends: 2026-01-31T18:00:00Z, or 2026-01-31 18:00 or 18:00 in the time of this machine")
	f.StringVar(&r.name, "name", "", "name of the freeze; made from the reason where it is left out")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait for the manager to acknowledge it; 0 does not wait")
	output.Register(cmd)
	terminal.Offer(cmd, "level", []string{"Destructive", "All"})
	return cmd
}

func unfreezeCommand() *cobra.Command {
	flags, r := &access.Flags{}, &unfreezeRequest{}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "unfreeze (--name NAME | --all [--yes] | --breaker)",
		Short: "Let go of what was held back",
		Long: "Takes freezes off FleetControl \"fleet\", or closes its breaker after it has tripped. What was held back goes on at once. " +
			"With --all it shows the freezes and asks first; one that another user adds or changes meanwhile stays.\n\n" +
			"Exit codes: 0 it is lifted, or there was none. 1 there is no freeze of that name, the answer was no, a freeze that was " +
			"shown has changed, or it could not be stored. 2 the command line makes no sense, or no user was there to confirm.",
		Example: "  {{.}} unfreeze --name switch-upgrade-in-rack-r1\n\n" +
			"  # Too many servers failed at once, the cause is found, and the fleet may go on\n" +
			"  {{.}} unfreeze --breaker",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage.Errorf("name a freeze with --name %s; see --help", args[0])
			}
			return r.check()
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			if r.all {
				control, err := read(ctx, c)
				if err != nil {
					return err
				}
				if err := r.confirm(ctx, t, control); err != nil {
					return err
				}
			}
			return lift(ctx, c, t, r, output)
		}),
	}
	flags.Register(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&r.names, "name", nil, "name of a freeze; may be repeated")
	f.BoolVar(&r.all, "all", false, "every freeze; the breaker is not one")
	f.BoolVar(&r.breaker, "breaker", false, "the breaker, after it has tripped")
	f.BoolVarP(&r.yes, "yes", "y", false, "with --all: do not ask for a confirmation")
	output.Register(cmd)
	// The error is about a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("name", flags.Complete(0, freezeNames))
	return cmd
}

func lift(ctx context.Context, c client.Client, t *terminal.Terminal, r *unfreezeRequest, output terminal.Output) error {
	lifted, left := []string{}, []string(nil)
	err := edit(ctx, c, func(control *policyv1alpha1.FleetControl) (bool, error) {
		words, err := r.lift(control, time.Now())
		if err != nil {
			return false, err
		}
		lifted, left = words, lists.Map(control.Spec.Freezes, freeze.Words)
		return len(words) > 0, nil
	})
	if err != nil {
		return err
	}
	output.Show(t, map[string][]string{"lifted": append([]string{}, lifted...)}, func() {
		if len(lifted) == 0 {
			lifted = []string{"nothing: nothing was held back that way"}
		}
		for _, words := range lifted {
			t.Printf("lifted %s\n", terminal.Plain(words))
		}
	})
	return r.leftOver(left)
}

func freezeNames(ctx context.Context, c client.Client) ([]string, error) {
	control, err := read(ctx, c)
	return lists.Map(control.Spec.Freezes, func(f *policyv1alpha1.Freeze) string { return cobra.CompletionWithDesc(f.Name, f.Reason) }), err
}

func statusCommand(flags *access.Flags) *cobra.Command {
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show freezes, budgets, the breaker, and the servers from which something is withheld",
		Long: "Shows what FleetControl \"fleet\" holds back and on how many servers, how far each budget is used, and whether the breaker has " +
			"tripped. It lists every server from which something that its state asks for is withheld, with the reason. A manager that runs with " +
			"--observe-only is seen by the reason ObserveOnly.\n\n" +
			"Exit codes: 0 shown, whatever it shows. 1 it could not be read. 2 the command line makes no sense.",
		Args: usage.NoArgs,
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			control, err := read(ctx, c)
			if err != nil {
				return err
			}
			var list v1alpha1.ServerList
			if err := c.List(ctx, &list); err != nil && !apierrors.IsNotFound(err) {
				return access.Explain(err, "list", access.Servers)
			}
			var inventories policyv1alpha1.ServerInventoryList
			if err := c.List(ctx, &inventories); err != nil && !apierrors.IsNotFound(err) {
				return access.Explain(err, "list", access.Inventories)
			}
			s := statusOf(control, list.Items, inventories.Items, t.Now)
			output.Show(t, s, func() { (&page{t}).show(&s) })
			return nil
		}),
	}
	output.Register(cmd)
	return cmd
}

// attempts is how often a change is tried that somebody else's write came before.
const attempts = 5

// read is the FleetControl; an empty one, without a resource version, where there is none.
func read(ctx context.Context, c client.Reader) (*policyv1alpha1.FleetControl, error) {
	control := &policyv1alpha1.FleetControl{}
	err := c.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, control)
	if apierrors.IsNotFound(err) {
		control = &policyv1alpha1.FleetControl{}
		control.Name = policyv1alpha1.FleetControlName
		return control, nil
	}
	return control, access.Explain(err, "get", access.FleetControls)
}

// edit changes the FleetControl, and makes one where there is none. A change that comes after somebody else's is made
// anew on what they wrote; change is called for each attempt, and returns false where nothing is to be stored.
func edit(ctx context.Context, c client.Client, change func(*policyv1alpha1.FleetControl) (bool, error)) error {
	for range attempts {
		control, err := read(ctx, c)
		if err != nil {
			return err
		}
		before := control.DeepCopy()
		if store, err := change(control); err != nil || !store {
			return err
		}
		verb := "patch"
		if before.ResourceVersion == "" {
			verb = "create"
			err = c.Create(ctx, control, client.FieldOwner(access.FieldManager))
		} else {
			err = c.Patch(ctx, control, mergepatch.Locked(before), client.FieldOwner(access.FieldManager))
		}
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return access.Explain(err, verb, access.FleetControls)
		}
	}
	return fmt.Errorf("others keep changing FleetControl %s; try again", policyv1alpha1.FleetControlName)
}
