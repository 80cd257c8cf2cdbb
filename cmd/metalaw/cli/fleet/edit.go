// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
)

// attempts is how often a change is tried that somebody else's write came before.
const attempts = 5

// read is the FleetControl; an empty one, without a resource version, where there is none.
func read(ctx context.Context, c client.Reader) (*policyv1alpha1.FleetControl, error) {
	control := &policyv1alpha1.FleetControl{}
	err := c.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, control)
	if apierrors.IsNotFound(err) {
		control = &policyv1alpha1.FleetControl{}
		control.Name = policyv1alpha1.FleetControlName
		return control, nil
	}
	return control, access.Explain(err, "get", access.FleetControls)
}

// edit changes the FleetControl, and makes one where there is none. A change that comes after somebody else's is made
// anew on what they wrote; change is called for each attempt, and returns false where nothing is to be stored.
func edit(ctx context.Context, c client.Client, change func(*policyv1alpha1.FleetControl) (bool, error)) error {
	for range attempts {
		control, err := read(ctx, c)
		if err != nil {
			return err
		}
		before := control.DeepCopy()
		if store, err := change(control); err != nil || !store {
			return err
		}
		verb := "patch"
		if before.ResourceVersion == "" {
			verb = "create"
			err = c.Create(ctx, control, client.FieldOwner(access.FieldManager))
		} else {
			lock := client.MergeFromWithOptimisticLock{}
			err = c.Patch(ctx, control, client.MergeFromWithOptions(before, lock), client.FieldOwner(access.FieldManager))
		}
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return access.Explain(err, verb, access.FleetControls)
		}
	}
	return fmt.Errorf("others keep changing FleetControl %s; try again", policyv1alpha1.FleetControlName)
}
