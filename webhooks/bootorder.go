// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var bootOrderPath = field.NewPath("spec", "bootOrder")

// checkBootOrder: a device has one place in the boot order. A device that a stored order names as often is not held
// against an update.
func checkBootOrder(c change[v1alpha1.Server], found *findings) {
	stored := map[string]int{}
	if !c.created() {
		for _, b := range c.old.Spec.BootOrder {
			stored[b.Device]++
		}
	}
	first, times := map[string]int{}, map[string]int{}
	for i, b := range c.new.Spec.BootOrder {
		times[b.Device]++
		if times[b.Device] == 1 {
			first[b.Device] = i
			continue
		}
		if times[b.Device] > stored[b.Device] {
			err := field.Duplicate(bootOrderPath.Index(i).Child("device"), b.Device)
			err.Detail = fmt.Sprintf("%s names it already, and a device has one place in the boot order; take one of the two out",
				bootOrderPath.Index(first[b.Device]))
			found.deny(err)
		}
	}
}
