// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"

	"github.com/metalaw/metalaw/api/canary"
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// ParseScope reads the annotations of a head, and says in words what is wrong with them.
func ParseScope(annotations map[string]string) (canary.Scope, error) {
	const servers, percent = policyv1alpha1.CanaryServersAnnotation, policyv1alpha1.CanaryPercentAnnotation
	scope, faults := canary.Parse(annotations)
	var wrong []error
	for _, f := range faults {
		switch f.Kind {
		case canary.NoScope:
			wrong = append(wrong, fmt.Errorf("a canary needs annotation %s (a label selector), %s (1 to 100), or both", servers, percent))
		case canary.NoSelector:
			wrong = append(wrong, fmt.Errorf("annotation %s: %w; write a label selector such as rack in (r1, r2)", servers, f.Cause))
		case canary.SelectsAll:
			wrong = append(wrong, fmt.Errorf("annotation %s is empty and would name every server; write a label selector such as rack=r1, or "+
				"leave it out and give a percentage", servers))
		case canary.NoShare:
			wrong = append(wrong, fmt.Errorf("annotation %s is %q; write a whole number from 1 to 100", percent, f.Value))
		}
	}
	return scope, errors.Join(wrong...)
}
