// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
)

func rollbackCommand() *cobra.Command {
	r := &rollout{}
	var to string
	cmd := &cobra.Command{
		Use:   "rollback [--to REVISION]",
		Short: "Bring the revision that was in force before back into force",
		Long: "Promotes the revision that was in force before the present one, or the one that --to names. Its ConfigMap is labelled active " +
			"again; where it is gone, or holds something else by now, one is made of what the PolicyRevision holds. Servers that the present " +
			"revision halted adopt the " +
			"former one at once, others where they rest. It takes the verb activate on policyrevisions. A ConfigMap that Argo CD, Flux or " +
			"Helm keeps is not changed: the change for the repository is printed.\n\n" +
			"Exit codes: 0 it is promoted, and with --wait in force; 1 it was refused, there is nothing to go back to, another program keeps the " +
			"ConfigMap, or it did not come about in time; 2 the command line makes no sense.",
		Example: "  {{.}} policy rollback --wait\n  {{.}} policy rollback --to fleet-1.3.0-9b1d0a77c2",
		Args:    usage.NoArgs,
	}
	r.register(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the PolicyRevision to go back to; the one before the present one where it is left out")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t := terminal.Of(cmd)
		c, err := r.flags.Connect(t.Err)
		if err != nil {
			return err
		}
		all, err := revisions(cmd.Context(), c)
		if err != nil {
			return err
		}
		target, err := former(all, to)
		if err != nil {
			return err
		}
		head, err := r.headOf(cmd.Context(), c, target)
		if err != nil {
			return err
		}
		if head == nil {
			return r.restore(cmd.Context(), t, c, target)
		}
		return r.apply(cmd.Context(), t, c, head, change{stage: policyv1alpha1.LabelActive})
	}
	return cmd
}

// former is the revision to go back to: the one named, or else the one that was in force before the present one.
func former(all []policyv1alpha1.PolicyRevision, name string) (*policyv1alpha1.PolicyRevision, error) {
	if name != "" {
		i := slices.IndexFunc(all, func(r policyv1alpha1.PolicyRevision) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no PolicyRevision %s; `metalaw policy history` lists them", name)
		}
		return &all[i], nil
	}
	for i := range all {
		if i > 0 && promotion(&all[i]) > 0 {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("there is nothing to go back to: at most one revision was ever promoted")
}

// headOf finds the ConfigMap that a revision came from; nil where it does not exist, or holds something else by now.
func (r *rollout) headOf(ctx context.Context, c client.Client, revision *policyv1alpha1.PolicyRevision) (*corev1.ConfigMap, error) {
	name := revision.Status.Head
	if name == "" && revision.Spec.Source != nil {
		name = revision.Spec.Source.Name
	}
	if name == "" {
		return nil, nil
	}
	head := &corev1.ConfigMap{}
	err := c.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: name}, head)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, access.Explain(err, "get", "configmaps")
	}
	if same, err := holds(ctx, c, head, revision); err != nil || !same {
		return nil, err
	}
	return head, nil
}

// holds says whether a head has the content of a revision: all of it, or what was there before the rest was filled in.
func holds(ctx context.Context, c client.Client, head *corev1.ConfigMap, revision *policyv1alpha1.PolicyRevision) (bool, error) {
	var failed error
	files, found := bundle.Assemble(head.Data, func(holder, file string) (string, bool) {
		part := &corev1.ConfigMap{}
		if err := c.Get(ctx, types.NamespacedName{Namespace: head.Namespace, Name: holder}, part); err != nil {
			if !apierrors.IsNotFound(err) {
				failed = access.Explain(err, "get", "configmaps")
			}
			return "", false
		}
		text, ok := part.Data[file]
		return text, ok
	})
	digest := files.Digest()
	source := revision.Spec.Source
	return !found.HasErrors() && (digest == revision.Spec.Digest || source != nil && digest == source.Digest), failed
}

// restore makes the ConfigMap of a revision anew, with the whole content that the revision holds.
func (r *rollout) restore(ctx context.Context, t *terminal.Terminal, c client.Client, revision *policyv1alpha1.PolicyRevision) error {
	files, err := bundle.Unpack(revision.Spec.Content)
	if err != nil {
		return err
	}
	head := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: revision.Name, Labels: map[string]string{
			policyv1alpha1.BundleLabel: revision.Spec.Bundle, policyv1alpha1.StageLabel: policyv1alpha1.LabelActive}},
		Data: make(map[string]string, len(files)),
	}
	for name, data := range files {
		head.Data[name] = string(data)
	}
	if err := c.Create(ctx, head, client.FieldOwner(access.FieldManager)); err != nil {
		return access.Explain(err, "create", "configmaps")
	}
	if _, err := fmt.Fprintf(t.Out, "%s: active; the ConfigMap that it came from is gone or holds something else, and this one is made of the "+
		"PolicyRevision\n", head.Name); err != nil {
		return err
	}
	if !r.wait {
		return nil
	}
	return r.follow(ctx, t, c, head, policyv1alpha1.LabelActive)
}
