// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/webhooks/review"
)

// checkInventory keeps the marks of a machine's custody: they are what remembers the data when its Server is gone.
func checkInventory(c review.Change[policyv1alpha1.ServerInventory], found *review.Findings) {
	checkInventoryDoubt(c, found)
	if c.Created() || c.ByManager {
		return
	}
	lost := marksOf(c.Old)
	says := c.Old
	if !c.Deleted() {
		says = c.New
		lost = slices.DeleteFunc(lost, func(mark string) bool { return slices.Contains(marksOf(c.New), mark) })
	}
	stranger := slices.Equal(lost, []string{policies.MarkStranger}) // then nothing is known to be on the disks
	marks := strings.Join(lost, ", ")
	switch {
	case len(lost) == 0:
	case says.Annotations[v1alpha1.DeleteDataAnnotation] == "true" && stranger:
		found.Warn("machine %s is no longer known to have been found running; "+
			"once it is off it may be booted and offered, even if another program runs it",
			c.Old.Spec.SystemUUID)
	case says.Annotations[v1alpha1.DeleteDataAnnotation] == "true":
		found.Warn("machine %s is no longer known to bear %s; nothing erases its disks, and it may be offered with what is on them",
			c.Old.Spec.SystemUUID, marks)
	case stranger:
		found.Deny(field.Forbidden(field.NewPath("custody", "marks"), fmt.Sprintf(
			"the inventory remembers that machine %s was found running. Only the manager takes that away, when the machine is given to it; "+
				"set annotation %s=%s on its Server, or %s",
			c.Old.Spec.SystemUUID, v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver, deleteDataRemedy)))
	default:
		found.Deny(field.Forbidden(field.NewPath("custody", "marks"), fmt.Sprintf(
			"the inventory remembers what the disks of machine %s may hold (%s). Only the manager takes that away, when they were wiped; "+
				"release the server and let it be wiped, or %s", c.Old.Spec.SystemUUID, marks, deleteDataRemedy)))
	}
}

// marksOf is a copy.
func marksOf(i *policyv1alpha1.ServerInventory) []string {
	if i.Custody == nil {
		return nil
	}
	return slices.Clone(i.Custody.Marks)
}
