// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaceLimit is how long the manager waits for an API server that says nothing of its namespace.
const namespaceLimit = 10 * time.Second

// checkNamespace says whether the manager's namespace is there: its lease and its certificates are kept in it. An API
// server that does not answer says nothing about it, and the manager waits for one later on.
func (o *options) checkNamespace(ctx context.Context, api client.Reader) error {
	limited, cancel := context.WithTimeout(ctx, namespaceLimit)
	defer cancel()
	err := api.Get(limited, types.NamespacedName{Name: o.namespace}, &corev1.Namespace{})
	const remedy = "name the namespace that the manager runs in, such as metalaw-system"
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("nothing was started: --namespace=%q: there is no such namespace; %s, or create it", o.namespace, remedy)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("nothing was started: --namespace=%q: there is no such namespace, or the manager has no rights in it (%w); "+
			"%s: the Role metalaw-manager there lets it get the namespace", o.namespace, err, remedy)
	default:
		return nil
	}
}
