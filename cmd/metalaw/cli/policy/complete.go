// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// headNames are the ConfigMaps that are heads of bundles, with their stages.
func headNames(namespace *string) func(ctx context.Context, c client.Client) ([]string, error) {
	return func(ctx context.Context, c client.Client) ([]string, error) {
		all, err := headsMeta(ctx, c, *namespace)
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range all {
			stage := cmp.Or(all[i].Labels[policyv1alpha1.StageLabel], policyv1alpha1.LabelDraft)
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
