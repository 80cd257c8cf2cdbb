// SPDX-License-Identifier: Apache-2.0

// Package deletion judges the deletion of an object that remembers what a user decided.
package deletion

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/freeze"
	"github.com/metalaw/metalaw/webhooks/review"
)

// FleetControl refuses a deletion that would end a freeze or close the breaker. A tool that installs the program
// deletes and makes objects anew, and knows nothing of either.
func FleetControl(c *policyv1alpha1.FleetControl, now time.Time, found *review.Findings) {
	for i := range c.Spec.Freezes {
		f := &c.Spec.Freezes[i]
		if freeze.Ended(f, now) {
			continue
		}
		found.Deny(field.Forbidden(field.NewPath("spec", "freezes").Index(i), fmt.Sprintf(
			"the deletion would end the %s; lift it first: metalaw unfreeze --name %s", freeze.Words(f), f.Name)))
	}
	if freeze.Tripped(c) {
		found.Deny(field.Forbidden(field.NewPath("status", "trip"), fmt.Sprintf(
			"the deletion would close the breaker, which tripped at %s; close it first: metalaw unfreeze --breaker",
			c.Status.Trip.At.UTC().Format(time.RFC3339))))
	}
}
