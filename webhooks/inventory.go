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
)

// checkInventory keeps the marks of a machine's custody: they are what remembers the data when its Server is gone.
func checkInventory(c change[policyv1alpha1.ServerInventory]) findings {
	var found findings
	if c.created() || c.byManager {
		return found
	}
	lost := marksOf(c.old)
	says := c.old
	if !c.deleted() {
		says = c.new
		lost = slices.DeleteFunc(lost, func(mark string) bool { return slices.Contains(marksOf(c.new), mark) })
	}
	if len(lost) == 0 {
		return found
	}
	marks := strings.Join(lost, ", ")
	if says.Annotations[v1alpha1.DeleteDataAnnotation] == "true" && slices.Equal(lost, strangers) {
		found.warn("machine %s is no longer known to have been found running; once it is off it may be booted and offered, whoever runs it",
			c.old.Spec.SystemUUID)
		return found
	}
	if says.Annotations[v1alpha1.DeleteDataAnnotation] == "true" {
		found.warn("machine %s is no longer known to bear %s; nothing erases its disks, and it may be offered with what is on them",
			c.old.Spec.SystemUUID, marks)
		return found
	}
	if slices.Equal(lost, strangers) {
		found.deny(field.Forbidden(field.NewPath("custody", "marks"), fmt.Sprintf(
			"the inventory remembers that machine %s was found running, and only the manager takes that away, when the machine is given to it; "+
				"set annotation %s=%s on its Server, or %s",
			c.old.Spec.SystemUUID, v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver, deleteDataRemedy)))
		return found
	}
	found.deny(field.Forbidden(field.NewPath("custody", "marks"), fmt.Sprintf(
		"the inventory remembers what the disks of machine %s may hold (%s), and only the manager takes that away, when they were wiped; "+
			"release the server and let it be wiped, or %s", c.old.Spec.SystemUUID, marks, deleteDataRemedy)))
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

func judgeInventory(_ context.Context, c change[policyv1alpha1.ServerInventory]) (findings, map[string]any, error) {
	return checkInventory(c), nil, nil
}
