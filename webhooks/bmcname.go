// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// longestSuffix is the longest that the manager adds to the name of a BMC: that of a Server, and of the Server's wipe.
const longestSuffix = "-system-255-wipe"

// checkBMCName refuses a new BMC whose Servers could not be named after it. One that exists keeps its name.
func checkBMCName(c review.Change[v1alpha1.BMC], found *review.Findings) {
	const most = validation.DNS1123SubdomainMaxLength - len(longestSuffix)
	if c.Created() && len(c.New.Name) > most {
		found.Deny(field.Invalid(field.NewPath("metadata", "name"), c.New.Name, fmt.Sprintf(
			"a name of a BMC has at most %d characters, because its Servers are named NAME-system-N; choose a shorter one", most)))
	}
}
