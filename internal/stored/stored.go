// SPDX-License-Identifier: Apache-2.0

// Package stored reads objects of which absence is an answer, and keeps what a process wrote until its cache shows that.
package stored

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/uuids"
)

// One reads an object; nil if there is none.
func One[T any, P interface {
	*T
	client.Object
}](ctx context.Context, from client.Reader, namespace, name string) (P, error) {
	object := P(new(T))
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}

// Inventory reads what is kept of a machine, in either spelling of its UUID; nil if nothing is.
func Inventory(ctx context.Context, from client.Reader, uuid string) (*policyv1alpha1.ServerInventory, error) {
	for _, name := range uuids.Spellings(uuid) {
		if found, err := One[policyv1alpha1.ServerInventory](ctx, from, "", name); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}
