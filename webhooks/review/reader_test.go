// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reads has every object, or none, or fails.
type reads struct {
	client.Reader

	absent bool
	err    error
}

// Get implements client.Reader.
func (r reads) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if r.absent {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return r.err
}
