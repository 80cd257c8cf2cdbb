// SPDX-License-Identifier: Apache-2.0

// Package migrate rehearses the way from metal-operator to metalaw and back. Its commands read a live cluster;
// only back writes, and only with --write.
package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/migrate/release"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/policies"
)

// maxBackup is the largest backup that is read: a hundred times 10,000 servers with their claims and boots.
const maxBackup = 4 << 30

// options are what the commands have in common.
type options struct {
	access.Flags
	output  terminal.Output
	shipped string
	known   []string
	before  string
}

// Command is `metalaw migrate` with its commands; program is how the user calls this program.
func Command(program string) *cobra.Command {
	o := &options{}
	group := terminal.Group(&cobra.Command{
		Use:   "migrate",
		Short: "Rehearse the way from metal-operator to metalaw, and back",
		Long: "Reads a live cluster and writes nothing, but for back with --write. plan shows what a manager would make of " +
			"each server. check compares a fleet that was taken over with what must be true before machines are touched. back " +
			"says whether metal-operator may have the fleet again.",
	}, "command", program+" migrate --help")
	o.Register(group)
	for _, cmd := range []*cobra.Command{o.planCommand(), o.checkCommand(), o.backCommand()} {
		cmd.Args = usage.NoArgs
		o.output.Register(cmd)
		group.AddCommand(cmd)
	}
	return group
}

func (o *options) planCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan [--bundle NAME]",
		Short: "Show what a manager would make of each server, and write nothing",
		Long: "Decides about each server as the manager does, by the same functions, and shows its state, the marks that it gets, the next move " +
			"and why. It works while metal-operator runs and before our CRDs are applied. Power is taken from the status; the manager " +
			"asks the BMC, and compares the machine's identity first. The policy is the revision in force, else the default bundle.\n\n" +
			"Exit codes: 0 shown. 1 something could not be read. 2 the command line makes no sense.",
		Example: "  {{.}} migrate plan\n\n  # Under the bundle that erases nothing between two holders\n  {{.}} migrate plan --bundle compat-v0.7",
		RunE: o.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			return plan(ctx, c, t, o)
		}),
	}
	cmd.Flags().StringVar(&o.shipped, "bundle", "",
		"shipped bundle to judge by, in place of the revision in force: "+strings.Join(policies.ShippedNames(), ", "))
	terminal.Offer(cmd, "bundle", policies.ShippedNames())
	return cmd
}

func (o *options) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [--before FILE] [--known NAME]...",
		Short: "Check a fleet that was taken over, before the first machine is touched",
		Long: "Compares the fleet with step 5 of the page \"Coming from metal-operator\". Each server is taken over. Each server that was " +
			"Reserved is Reserved, and its claim is Bound. No server is PolicyHalted, ClaimMissing or IdentityMismatch. Each BMC is Enabled. " +
			"What you know the cause of is named with --known: it is shown and does not count.\n\n" +
			"Exit codes: 0 the fleet is as it should be. 1 something is not, or could not be read. 2 the command line makes no sense.",
		Example: "  {{.}} migrate check --before before.yaml\n\n" +
			"  # One server whose claim was lost long ago\n  {{.}} migrate check --before before.yaml --known rack1-07-system-0",
		RunE: terminal.Run(func(ctx context.Context, t *terminal.Terminal, _ []string) error {
			before, err := o.readBefore(ctx, t.In)
			if err != nil {
				return err
			}
			return o.judge(ctx, t, "go on with step 6", func(f *fleet) verdict {
				v := f.check(before)
				if unused := v.know(o.known); len(unused) > 0 {
					v.Notes = append(v.Notes, "nothing was found about "+strings.Join(unused, ", ")+", which --known names")
				}
				return v
			})
		}),
	}
	cmd.Flags().StringVar(&o.before, "before", "",
		"the servers as they were with metal-operator: what kubectl get servers -o yaml wrote; - reads standard input")
	cmd.Flags().StringSliceVar(&o.known, "known", nil,
		"object whose findings you know the cause of: NAME, or NAMESPACE/NAME of a claim; may be repeated")
	return cmd
}

func (o *options) backCommand() *cobra.Command {
	var to string
	var write bool
	cmd := &cobra.Command{
		Use:   "back --to VERSION [--write]",
		Short: "Say whether metal-operator may have the fleet again, and what stands in the way",
		Long: "metal-operator does not know the mark Dirty, and may offer a machine with a holder's data. This refuses while a Dirty server is " +
			"neither Reserved for a claim that exists nor ignored, and while a server is in Discovery or Cleanup. It also " +
			"refuses a word of the operation annotation that VERSION does not honour: such an object is not left alone.\n\n" +
			"The word that leaves an object alone differs: v0.4 to v0.6 honour ignore-reconciliation, v0.7 and main honour " +
			"ignore. With --write the command writes the word of VERSION on each Server that needs it, also if its BMC has one, " +
			"and in place of each wrong word. " +
			"Metalaw honours all these words, and leaves the objects alone from then on.\n\n" +
			"Exit codes: 0 nothing stands in the way. 1 something does, or could not be read or written. " +
			"2 the command line makes no sense.",
		Example: "  {{.}} migrate back --to v0.7.0\n\n" +
			"  # Write the words that are missing\n  {{.}} migrate back --to v0.7.0 --write",
		RunE: terminal.Run(func(ctx context.Context, t *terminal.Terminal, _ []string) error {
			if to == "" {
				return usage.Errorf("--to is required: the version of metal-operator that gets the fleet, %s", release.Known)
			}
			r, err := release.Parse(to)
			if err != nil {
				return usage.Errorf("--to: %v", err)
			}
			return o.runBack(ctx, t, r, write)
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "version of metal-operator that gets the fleet: "+release.Known+"; required")
	cmd.Flags().BoolVar(&write, "write", false, "write the words by which VERSION leaves objects alone")
	terminal.Offer(cmd, "to", []string{"v0.4", "v0.5", "v0.6", "v0.7", "main"})
	return cmd
}

// judge reads the fleet and shows what stands in the way of the next step.
func (o *options) judge(ctx context.Context, t *terminal.Terminal, next string, of func(*fleet) verdict) error {
	c, err := o.Connect(t.Err)
	if err != nil {
		return err
	}
	f, err := read(ctx, c)
	if err != nil {
		return err
	}
	v := of(f)
	return v.show(t, o.output, terminal.Count(len(f.servers), "server")+" checked; "+next)
}

// plan reads the fleet with the policy that judges it, and shows what becomes of it.
func plan(ctx context.Context, c client.Reader, t *terminal.Terminal, o *options) error {
	f, err := read(ctx, c)
	if err == nil {
		err = f.readPolicy(ctx, c, o.shipped)
	}
	if err != nil {
		return err
	}
	f.showPlan(t, o.output)
	return nil
}

// readBefore reads the servers of a backup; nil where none is named.
func (o *options) readBefore(ctx context.Context, in io.Reader) ([]v1alpha1.Server, error) {
	if o.before == "" {
		return nil, nil
	}
	text, err := terminal.Read(ctx, o.before, in, maxBackup)
	if err != nil {
		return nil, fmt.Errorf("--before: %w", err)
	}
	servers, err := serversOf(text)
	if err != nil {
		return nil, fmt.Errorf("--before %s: %w", o.before, err)
	}
	return servers, nil
}

// serversOf finds the servers in a list as kubectl writes it, beside objects of other kinds.
func serversOf(text []byte) ([]v1alpha1.Server, error) {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("it is no list of Kubernetes objects: %w", err)
	}
	servers := []v1alpha1.Server{}
	for _, item := range list.Items {
		var kind struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(item, &kind); err != nil || kind.Kind != "Server" {
			continue // another kind; what cannot be read is no Server either, and the count below tells
		}
		var s v1alpha1.Server
		if err := json.Unmarshal(item, &s); err != nil {
			return nil, fmt.Errorf("a Server in it cannot be read: %w", err)
		}
		servers = append(servers, s)
	}
	if len(servers) == 0 {
		return nil, errors.New("there is no Server in it; write it with kubectl get servers -o yaml while metal-operator runs")
	}
	return servers, nil
}
