// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

var bootOrderPath = field.NewPath("spec", "bootOrder")

// checkBootOrder: a device has one place in the boot order. A device that a stored order names as often is not held
// against an update.
func checkBootOrder(c review.Change[v1alpha1.Server], found *review.Findings) {
	stored := map[string]int{}
	if !c.Created() {
		for _, b := range c.Old.Spec.BootOrder {
			stored[b.Device]++
		}
	}
	first, times := map[string]int{}, map[string]int{}
	for i, b := range c.New.Spec.BootOrder {
		times[b.Device]++
		if times[b.Device] == 1 {
			first[b.Device] = i
			continue
		}
		if times[b.Device] > stored[b.Device] {
			err := field.Duplicate(bootOrderPath.Index(i).Child("device"), b.Device)
			err.Detail = fmt.Sprintf("%s names it already, and a device has one place in the boot order; take one of the two out",
				bootOrderPath.Index(first[b.Device]))
			found.Deny(err)
		}
	}
}
