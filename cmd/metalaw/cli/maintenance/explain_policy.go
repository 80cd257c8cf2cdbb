// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func isController(o *metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller }

func (e *explanation) readRights(context.Context, client.Reader, *v1alpha1.ServerMaintenance, *v1alpha1.Server, *v1alpha1.ServerClaim) error {
	return nil
}

func (e *explanation) readWindow(context.Context, client.Reader, *v1alpha1.ServerMaintenance, *v1alpha1.Server, *v1alpha1.ServerClaim, time.Time) error {
	return nil
}
