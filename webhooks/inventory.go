// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
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
func checkInventory(c review.Change[policyv1alpha1.ServerInventory]) review.Findings {
	var found review.Findings
	if c.Created() || c.ByManager {
		return found
	}
	lost := marksOf(c.Old)
	says := c.Old
	if !c.Deleted() {
		says = c.New
		lost = slices.DeleteFunc(lost, func(mark string) bool { return slices.Contains(marksOf(c.New), mark) })
	}
	if len(lost) == 0 {
		return found
	}
	marks := strings.Join(lost, ", ")
	if says.Annotations[v1alpha1.DeleteDataAnnotation] == "true" && slices.Equal(lost, strangers) {
		found.Warn("machine %s is no longer known to have been found running; once it is off it may be booted and offered, whoever runs it",
			c.Old.Spec.SystemUUID)
		return found
	}
	if says.Annotations[v1alpha1.DeleteDataAnnotation] == "true" {
		found.Warn("machine %s is no longer known to bear %s; nothing erases its disks, and it may be offered with what is on them",
			c.Old.Spec.SystemUUID, marks)
		return found
	}
	if slices.Equal(lost, strangers) {
		found.Deny(field.Forbidden(field.NewPath("custody", "marks"), fmt.Sprintf(
			"the inventory remembers that machine %s was found running, and only the manager takes that away, when the machine is given to it; "+
				"set annotation %s=%s on its Server, or %s",
			c.Old.Spec.SystemUUID, v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver, deleteDataRemedy)))
		return found
	}
	found.Deny(field.Forbidden(field.NewPath("custody", "marks"), fmt.Sprintf(
		"the inventory remembers what the disks of machine %s may hold (%s), and only the manager takes that away, when they were wiped; "+
			"release the server and let it be wiped, or %s", c.Old.Spec.SystemUUID, marks, deleteDataRemedy)))
	return found
}

// strangers is what is lost where nothing is known to be on the disks.
var strangers = []string{policies.MarkStranger}

// marksOf is a copy.
func marksOf(i *policyv1alpha1.ServerInventory) []string {
	if i.Custody == nil {
		return nil
	}
	return slices.Clone(i.Custody.Marks)
}

func judgeInventory(_ context.Context, c review.Change[policyv1alpha1.ServerInventory]) (review.Findings, map[string]any, error) {
	return checkInventory(c), nil, nil
}
