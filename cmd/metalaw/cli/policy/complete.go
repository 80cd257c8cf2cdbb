// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// completionLimit is how long a shell waits for names.
const completionLimit = 3 * time.Second

// completing answers a shell from the cluster, with the names that begin as what was typed.
func completing(flags *access.Flags, names func(ctx context.Context, c client.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		c, err := flags.Connect(cmd.ErrOrStderr())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		all, err := names(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return beginning(all, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// beginning are the words with a prefix.
func beginning(all []string, prefix string) []string {
	var found []string
	for _, word := range all {
		if strings.HasPrefix(word, prefix) {
			found = append(found, word)
		}
	}
	return found
}

// one completes the only argument of a command.
func one(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, given, prefix)
	}
}

// headNames are the ConfigMaps that are heads of bundles, with their stages.
func headNames(namespace *string) func(ctx context.Context, c client.Client) ([]string, error) {
	return func(ctx context.Context, c client.Client) ([]string, error) {
		all, err := headsMeta(ctx, c, *namespace)
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range all {
			stage := all[i].Labels[policyv1alpha1.StageLabel]
			if stage == "" {
				stage = policyv1alpha1.LabelDraft
			}
			names = append(names, cobra.CompletionWithDesc(all[i].Name, terminal.Plain(stage)))
		}
		return names, nil
	}
}

// revisionNames are the PolicyRevisions, with their stages.
func revisionNames(ctx context.Context, c client.Client) ([]string, error) {
	all, err := revisions(ctx, c)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range all {
		names = append(names, cobra.CompletionWithDesc(all[i].Name, string(all[i].Status.Stage)))
	}
	return names, nil
}
