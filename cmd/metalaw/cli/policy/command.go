// SPDX-License-Identifier: Apache-2.0

// Package policy is `metalaw policy`: what an author of bundles does at a desk (start, verify, test, draw), with the engine
// of the manager and without a cluster, and what an operator does in a cluster (promote, roll back, look back).
package policy

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Command is `metalaw policy` with its verbs; program is how the user calls this program.
func Command(program string) *cobra.Command {
	group := terminal.Group(&cobra.Command{
		Use:   "policy",
		Short: "Write, verify, test, draw and roll out policy bundles",
		Long: "A policy bundle says what a server may do next, which server a claim gets, what is refused at admission, and what a MAC address " +
			"means. init, add, verify, test, render and schema need no cluster: they use the engine that the manager uses, so that what they " +
			"accept is accepted there. verify --live, promote, rollback and history work on the bundles in a cluster.\n\n" +
			"Exit codes: 0 done, and a bundle that was looked at could be accepted. 1 it could not, something failed, or it was interrupted. " +
			"2 the command line makes no sense.",
	}, "verb", program+" policy --help")
	group.AddCommand(initCommand(), addCommand(), verifyCommand(), testCommand(), renderCommand(), schemaCommand(),
		promoteCommand(), rollbackCommand(), historyCommand())
	for _, verb := range group.Commands() {
		readsOne(verb)
	}
	return group
}

// once is a flag that may be given one time: who gives it twice would have the first looked at as little as told of.
type once struct {
	pflag.Value
	given bool
}

func (o *once) Set(text string) error {
	if o.given {
		return errors.New("it is given twice; call the command once for each bundle")
	}
	o.given = true
	return o.Value.Set(text)
}

// readsOne lets a command that reads a bundle read one.
func readsOne(cmd *cobra.Command) {
	if f := cmd.Flags().Lookup("filename"); f != nil {
		f.Value = &once{Value: f.Value}
	}
}

func headNames(namespace *string) func(ctx context.Context, c client.Client) ([]string, error) {
	return func(ctx context.Context, c client.Client) ([]string, error) {
		all, err := headsMeta(ctx, c, *namespace)
		return lists.Map(all, func(o *metav1.PartialObjectMetadata) string {
			return cobra.CompletionWithDesc(o.Name, terminal.Plain(cmp.Or(o.Labels[policyv1alpha1.StageLabel], policyv1alpha1.LabelDraft)))
		}), err
	}
}

func revisionNames(ctx context.Context, c client.Client) ([]string, error) {
	all, err := revisions(ctx, c)
	return lists.Map(all, func(r *policyv1alpha1.PolicyRevision) string {
		return cobra.CompletionWithDesc(r.Name, string(r.Status.Stage))
	}), err
}
