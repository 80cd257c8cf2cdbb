// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
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
			t.Printf("%s: revision %s is in force already, by promotion %d; nothing was changed\n", head.Name, in.Name, promotion(in))
			return true, nil
		}
		if one := q.askedAlready(head, others); one != nil {
			q.already = true
			why := meta.FindStatusCondition(one.Status.Conditions, policyv1alpha1.ConditionActive).Message
			t.Printf("%s: revision %s is on its way into force already (%s); nothing was changed\n", head.Name, one.Name, terminal.Plain(why))
			return !r.wait, nil
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
	t.Notef("%s", words)
	if !r.yes && !t.Confirm(ctx, what+"?") {
		return errors.New("nothing was changed")
	}
	return nil
}
