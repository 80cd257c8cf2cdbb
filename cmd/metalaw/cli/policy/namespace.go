// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noNamespace says that there is no namespace of this name. Who may not ask is not told so.
func noNamespace(ctx context.Context, c client.Client, name string) bool {
	return apierrors.IsNotFound(c.Get(ctx, types.NamespacedName{Name: name}, &corev1.Namespace{}))
}
