// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	contentvalidation "k8s.io/apimachinery/pkg/api/validate/content"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Get reads an object from the first of some readers that has it. It returns nil where none has, and where nothing can have such a
// name.
func Get[T any, P Pointer[T]](ctx context.Context, key client.ObjectKey, readers ...client.Reader) (P, error) {
	if len(contentvalidation.IsPathSegmentName(key.Name)) > 0 {
		return nil, nil
	}
	for _, from := range readers {
		o := P(new(T))
		err := from.Get(ctx, key, o)
		if err == nil {
			return o, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%q cannot be read: %w", key.Name, err)
		}
	}
	return nil, nil
}
