// SPDX-License-Identifier: Apache-2.0

// Package said keeps what people said of a machine in its inventory, and gives it back to a new Server of the machine.
package said

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/kept"
)

// Return changes a Server in memory that was never looked at: it gets back what was said of its machine. One that lost
// its status gets nothing that it does not have.
func Return(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) {
	if s.Status.Lifecycle == nil && inventory != nil {
		kept.Read(inventory.Annotations[v1alpha1.KeptAnnotation]).Return(s)
	}
}

// Keep has the inventory keep what its Server says now. write changes the stored inventory.
func Keep(
	ctx context.Context, rules client.Reader, s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory,
	write func(context.Context, func(*policyv1alpha1.ServerInventory)) error,
) error {
	change, err := Due(ctx, rules, s, inventory)
	if change == nil || err != nil {
		return err
	}
	return write(ctx, change)
}

// Due is the change by which an inventory keeps what its Server says now; nil where it does already. A Server that was
// never looked at says nothing yet.
func Due(
	ctx context.Context, rules client.Reader, s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory,
) (func(*policyv1alpha1.ServerInventory), error) {
	if s.Status.Lifecycle == nil || s.Spec.SystemUUID == "" {
		return nil, nil
	}
	var ruled []v1alpha1.Taint
	if len(s.Spec.Taints) > 0 {
		var all v1alpha1.ServerReadinessRuleList
		if err := rules.List(ctx, &all); err != nil {
			return nil, fmt.Errorf("tell taints of readiness rules from those of people: %w", err)
		}
		for i := range all.Items {
			ruled = append(ruled, all.Items[i].Spec.Taint)
		}
	}
	words, stands := kept.Of(s, ruled), ""
	if inventory != nil {
		stands = inventory.Annotations[v1alpha1.KeptAnnotation]
	}
	if words.Text() == stands {
		return nil, nil
	}
	return func(i *policyv1alpha1.ServerInventory) { words.Keep(&i.ObjectMeta) }, nil
}
