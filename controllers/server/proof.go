// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// readProof judges a server whose status.lifecycle was pruned. It reads past the cache: the cache drops managed fields, and may
// show an inventory from before the last claim. Where the cache is behind nothing is decided yet: a fear of data is stored for good.
func (v readShell) readProof(ctx context.Context) error {
	if !policies.Pruned(v.server, v.inventory) {
		return nil
	}
	inventory, server := &policyv1alpha1.ServerInventory{}, &v1alpha1.Server{}
	if err := v.Reader.Get(ctx, types.NamespacedName{Name: v.inventory.Name}, inventory); err != nil {
		return behind("serverinventories", v.inventory.Name, err)
	}
	if err := v.Reader.Get(ctx, types.NamespacedName{Name: v.server.Name}, server); err != nil {
		return behind("servers", v.server.Name, err)
	}
	if server.ResourceVersion != v.server.ResourceVersion {
		return behind("servers", v.server.Name, nil)
	}
	v.inventory, v.proof = inventory, policies.ProofOf(server, inventory)
	return nil
}

// behind is a conflict, which the loop meets with another look, where the cache shows what is stored otherwise or not at all.
func behind(resource, name string, err error) error {
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: resource}, name, errors.New("the cache is behind"))
}
