// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// weigh says before a head is labelled what speaks against it, and asks where somebody has to consent. It is done where what is asked
// for is so already, and where it is on its way already and nobody waits for it.
func (r *rollout) weigh(ctx context.Context, t *terminal.Terminal, c client.Client, head *corev1.ConfigMap, q *request) (done bool, err error) {
	if words := q.standsStill(head); words != "" {
		return false, errors.New(words)
	}
	switch q.stage {
	case policyv1alpha1.LabelActive:
		others, err := headsMeta(ctx, c, head.Namespace)
		if err != nil {
			return false, err
		}
		if in := q.inForceAlready(head, others); in != nil {
			_, err := fmt.Fprintf(t.Out, "%s: revision %s is in force already, by promotion %d; nothing was changed\n",
				head.Name, in.Name, promotion(in))
			return true, err
		}
		if one := q.askedAlready(head, others); one != nil {
			q.already = true
			why := meta.FindStatusCondition(one.Status.Conditions, policyv1alpha1.ConditionActive).Message
			_, err := fmt.Fprintf(t.Out, "%s: revision %s is on its way into force already (%s); nothing was changed\n",
				head.Name, one.Name, terminal.Plain(why))
			return !r.wait, err
		}
		return false, r.fit(ctx, t, q)
	case policyv1alpha1.LabelCanary:
		return false, r.tellScope(ctx, t, c, q)
	}
	return false, nil
}

// fit asks for consent where the revision ought not to come into force for every server.
func (r *rollout) fit(ctx context.Context, t *terminal.Terminal, q *request) error {
	for i := range q.before {
		if one := &q.before[i]; q.concerns(one) {
			if words := r.unfit(one); words != "" {
				return r.consent(ctx, t, words, "promote "+one.Name+" to every server all the same")
			}
		}
	}
	return nil
}

// consent says what speaks against something, and wants a yes, where nobody has said so on the command line.
func (r *rollout) consent(ctx context.Context, t *terminal.Terminal, words, what string) error {
	if !r.yes && !t.Asks {
		return fmt.Errorf("nothing was changed: %s\nTo %s, add --yes", words, what)
	}
	//nolint:errcheck // Whoever cannot read it does not say yes, or has said so before.
	fmt.Fprintln(t.Err, words)
	if !r.yes && !t.Confirm(ctx, what+"?") {
		return errors.New("nothing was changed")
	}
	return nil
}

// headsMeta lists the heads of bundles without what they hold.
func headsMeta(ctx context.Context, c client.Client, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.List(ctx, list, client.InNamespace(namespace), client.HasLabels{policyv1alpha1.BundleLabel}); err != nil {
		return nil, access.Explain(err, "list", access.ConfigMaps)
	}
	return list.Items, nil
}
