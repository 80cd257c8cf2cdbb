// SPDX-License-Identifier: Apache-2.0

// Package leftover takes away what a former holder of a server left behind.
package leftover

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/orphaned"
)

// Drop deletes the boot configurations that name a server, were written for the purpose and lost their owner. A boot service
// that compares names alone would serve one of them to the next holder, whose own is about to be made.
func Drop(ctx context.Context, c client.Client, server, purpose string) error {
	var all v1alpha1.ServerBootConfigurationList
	if err := c.List(ctx, &all, client.MatchingFields{fieldindex.BootConfigurationByServer: server}); err != nil {
		return fmt.Errorf("find what a former holder of server %s left: %w", server, err)
	}
	for i := range all.Items {
		b := &all.Items[i]
		if !b.DeletionTimestamp.IsZero() || !orphaned.Boot(b, purpose) {
			continue
		}
		err := client.IgnoreNotFound(c.Delete(ctx, b, client.Preconditions{UID: &b.UID}))
		if err != nil {
			return fmt.Errorf("delete boot configuration %s/%s, which a former holder left: %w", b.Namespace, b.Name, err)
		}
	}
	return nil
}
