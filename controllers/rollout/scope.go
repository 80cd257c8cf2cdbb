// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"

	"github.com/metalaw/metalaw/internal/canary"
)

// ParseScope reads the annotations of a head, and says in words what is wrong with them.
func ParseScope(annotations map[string]string) (canary.Scope, error) {
	scope, faults := canary.Parse(annotations)
	var wrong []error
	for _, f := range faults {
		wrong = append(wrong, fmt.Errorf("annotation %s: %q: %s", f.Annotation(), f.Value, f))
	}
	return scope, errors.Join(wrong...)
}
