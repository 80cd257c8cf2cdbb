// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// What a claim asks for is compared with every server of the fleet: at admission, and in the one loop that binds all
// claims. So its length is bounded where it is read, and not by the schema of the API alone: claims are also stored by
// others than the API's clients of today, and one that was stored before must still be able to change and to go.
const (
	// MaxRequirements bounds matchLabels and matchExpressions of serverSelector together.
	MaxRequirements = 64
	// MaxSelectorValues bounds the values of all matchExpressions together.
	MaxSelectorValues = 256
	// MaxTolerations bounds tolerations. It is the schema's bound, for claims that are older than that.
	MaxTolerations = 64
)

// LimitError is a part of a claim that is longer than metalaw judges.
type LimitError struct {
	// Field is the part's path, What is of what it has too many, and Remedy what to write instead.
	Field, What, Remedy string
	Have, Most          int
}

// Error names the place, the limit and the remedy.
func (e *LimitError) Error() string { return e.Field + ": " + e.Detail() }

// Detail is the error without the place.
func (e *LimitError) Detail() string {
	return fmt.Sprintf("it has %d %s, and at most %d are judged; %s", e.Have, e.What, e.Most, e.Remedy)
}

// withinLimits says which part of a claim is longer than metalaw judges; nil where none is.
func withinLimits(c *v1alpha1.ServerClaim) *LimitError {
	if n := len(c.Spec.Tolerations); n > MaxTolerations {
		return &LimitError{Field: "spec.tolerations", What: "entries", Have: n, Most: MaxTolerations,
			Remedy: "tolerate whole keys with the operator Exists"}
	}
	s := c.Spec.ServerSelector
	if s == nil {
		return nil
	}
	const field, remedy = "spec.serverSelector", "give the servers that are meant one label, and select by that"
	if n := len(s.MatchLabels) + len(s.MatchExpressions); n > MaxRequirements {
		return &LimitError{Field: field, What: "requirements in matchLabels and matchExpressions", Have: n, Most: MaxRequirements, Remedy: remedy}
	}
	values := 0
	for _, e := range s.MatchExpressions {
		values += len(e.Values)
	}
	if values > MaxSelectorValues {
		return &LimitError{Field: field, What: "values in matchExpressions", Have: values, Most: MaxSelectorValues, Remedy: remedy}
	}
	return nil
}
