// SPDX-License-Identifier: Apache-2.0

// Package claim answers why a claim has the server that it has, or none, and what would become of a claim that is not there yet.
package claim

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Commands are `metalaw explain` and `metalaw claim`; explains are the commands that `metalaw explain` has besides its own.
func Commands(explains ...func(*access.Flags) *cobra.Command) []*cobra.Command {
	return []*cobra.Command{
		group("explain", "Say why something is as it is: claim, maintenance, server", append(explains, explainCommand)...),
		group("claim", "Ask what would become of claims: try", tryCommand),
	}
}

func group(name, short string, below ...func(*access.Flags) *cobra.Command) *cobra.Command {
	flags := &access.Flags{}
	cmd := terminal.Group(&cobra.Command{Use: name, Short: short}, "command", "--help")
	flags.Register(cmd)
	for _, one := range below {
		cmd.AddCommand(one(flags))
	}
	return cmd
}

func explainCommand(flags *access.Flags) *cobra.Command {
	var output terminal.Output
	var namespace string
	var all bool
	cmd := &cobra.Command{
		Use:   "claim NAME [-n NAMESPACE] [--all]",
		Short: "Say why a claim has its server, or which servers it could have and why not the others",
		Long: "Shows for a claim that waits: since when, what for, and its place in the order. It lists the servers that fit, in the order " +
			"in which they would be taken, and the nearest misses with code and message. A server has the first reason of the hard " +
			"contract, with a cordon and a taint behind it. Then come the reason of the claim's placement and all of the policy in force. " +
			"Those behind the first say what would be in the way next. The nearest are those whose reasons pass soonest: by " +
			"themselves, when another claim or a maintenance ends, when an operator acts, perhaps, or by a change of the claim. " +
			"Then come those with the fewest reasons, then those with the highest score. For a claim that is bound " +
			"it shows how the server was chosen.\n\n" +
			"It reads with your own rights: servers, inventories, claims, freezes and the revision in force. If you may not list servers, " +
			"it names the right that is missing, and shows what the claim itself says.\n\n" +
			"Exit codes: 0 explained, also by the claim's own words alone. 1 the claim or the cluster could not be " +
			"read. 2 the command line makes no sense.",
		Example: "  {{.}} explain claim web-1 -n team\n  {{.}} explain claim web-1 -n team --all -o json",
		Args:    usage.OneArg("name one claim"),
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
			in, err := flags.Namespace(namespace)
			if err != nil {
				return err
			}
			e, err := explain(ctx, c, in, args[0], all)
			if err != nil {
				return err
			}
			output.Show(t, e, func() { (&page{t, all}).explained(e) })
			return nil
		}),
		ValidArgsFunction: flags.Complete(1, func(ctx context.Context, c client.Client) ([]string, error) {
			in, err := flags.Namespace(namespace)
			if err != nil {
				return nil, err
			}
			return claimNames(ctx, c, in)
		}),
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the claim; that of the kubeconfig's context where it is left out")
	cmd.Flags().BoolVar(&all, "all", false, "show every server, and not only the first 20")
	output.Register(cmd)
	return cmd
}

func tryCommand(flags *access.Flags) *cobra.Command {
	r := &attempt{}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "try -f FILE|- [-f FILE]... [-n NAMESPACE] [--all]",
		Short: "Ask what would become of claims if they were created now, and store nothing",
		Long: "Reads ServerClaims from files, strictly, with the place of everything that is wrong. If you may create claims, it asks the " +
			"API server and its admission by a dry run. It says which server each would get now, with score and runners-up, " +
			"or what it would wait for. Claims are served in the order of the files. Each sees the servers of those before it as " +
			"taken, and those before it in the quota of its namespace. Those of one gang get servers together. Claims that wait " +
			"already are not served before them. Other objects in the files are " +
			"passed over; two claims of one name are refused.\n\n" +
			"Exit codes: 0 all would be bound. 1 one would not, it is not known, or no claims can be read from a file. " +
			"2 the command line or two claims of one name make no sense.",
		Example: "  {{.}} claim try -f claim.yaml\n  kubectl kustomize ./claims | {{.}} claim try -f - -n team",
		Args:    usage.NoArgs,
		RunE: terminal.Run(func(ctx context.Context, t *terminal.Terminal, _ []string) error {
			docs, err := r.read(ctx, t.In)
			if err != nil {
				return err
			}
			warnings := &warnings{}
			c, err := flags.ConnectWith(warnings)
			if err != nil {
				return err
			}
			in, err := flags.Namespace(r.namespace)
			if err != nil {
				return err
			}
			result, err := r.try(ctx, c, warnings, in, docs)
			if err != nil {
				return err
			}
			output.Show(t, result, func() { (&page{t, r.all}).tried(result) })
			if !ptr.Deref(result.Binds, false) {
				return terminal.ErrIncomplete
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringArrayVarP(&r.paths, "filename", "f", nil, "file with ServerClaims, or - for standard input; required, and may be repeated")
	f.StringVarP(&r.namespace, "namespace", "n", "", "namespace of claims that name none; that of the kubeconfig's context where it is left out")
	f.BoolVar(&r.all, "all", false, "show every server, and not only the first 20")
	output.Register(cmd)
	// The error is about a flag that does not exist.
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	return cmd
}

func claimNames(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	var claims v1alpha1.ServerClaimList
	err := c.List(ctx, &claims, client.InNamespace(namespace))
	return lists.Map(claims.Items, func(c *v1alpha1.ServerClaim) string { return cobra.CompletionWithDesc(c.Name, string(c.Status.Phase)) }), err
}
