// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rivals"
)

// Rivals are the other BMCs that show the UUID of a server. One whose object no longer exists is none.
func Rivals(
	ctx context.Context, from client.Reader, memory *rivals.Memory, s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory,
) (left []policyv1alpha1.RivalBMC, err error) {
	var stored []policyv1alpha1.RivalBMC
	if inventory != nil && inventory.Identity != nil {
		stored = inventory.Identity.Rivals
	}
	for _, r := range memory.Of(s.Spec.SystemUUID, BMCOf(s), stored) {
		err := from.Get(ctx, types.NamespacedName{Name: r.Name}, &v1alpha1.BMC{})
		if err == nil {
			left = append(left, r)
		} else if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
	}
	return left, nil
}

// RivalsDiffer says that the inventory keeps other rivals.
func RivalsDiffer(inventory *policyv1alpha1.ServerInventory, found []policyv1alpha1.RivalBMC) bool {
	if inventory == nil || inventory.Identity == nil {
		return len(found) > 0
	}
	return !equality.Semantic.DeepEqual(inventory.Identity.Rivals, found)
}

// BMCOf names the BMC object of a server; empty where it names none.
func BMCOf(s *v1alpha1.Server) string {
	if s.Spec.BMCRef == nil {
		return ""
	}
	return s.Spec.BMCRef.Name
}
