// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/stored"
)

// writeInventory changes what is kept of the machine.
func (x *executor) writeInventory(ctx context.Context, change func(*policyv1alpha1.ServerInventory)) error {
	inventory, err := x.storedInventory(ctx)
	if err != nil {
		return err
	}
	if inventory == nil {
		inventory = &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: x.server.Spec.SystemUUID},
			Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: x.server.Spec.SystemUUID}}
		change(inventory)
		return x.wroteInventory(inventory, x.Client.Create(ctx, inventory))
	}
	before := inventory.DeepCopy()
	change(inventory)
	if equality.Semantic.DeepEqual(before, inventory) {
		return nil // an earlier look wrote it, whose write of the server was refused
	}
	return x.wroteInventory(inventory, x.Client.Patch(ctx, inventory, mergepatch.Locked(before)))
}

// wroteInventory notes what the next write begins from.
func (x *executor) wroteInventory(inventory *policyv1alpha1.ServerInventory, err error) error {
	if err == nil {
		x.stored = inventory
	}
	return err
}

// storedInventory is the inventory as it was read when the server was confirmed, or is now. The API server refuses a write to it
// where it changed since.
func (x *executor) storedInventory(ctx context.Context) (*policyv1alpha1.ServerInventory, error) {
	if x.confirmed {
		return x.stored.DeepCopy(), nil
	}
	name := x.server.Spec.SystemUUID
	if x.seen.Inventory != nil {
		name = x.seen.Inventory.Name
	}
	return stored.One[policyv1alpha1.ServerInventory](ctx, x.Reader, "", name)
}
