// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/webhooks/review"
)

// claimAnnotations are those of metalaw that are read on a ServerClaim; the manager writes that of the operation's ID.
var claimAnnotations = []string{
	v1alpha1.MinimumTermAnnotation, v1alpha1.PriorityAnnotation, v1alpha1.PlacementAnnotation, v1alpha1.ProtectAnnotation,
	v1alpha1.OperationIDAnnotation, v1alpha1.DrainRequiredAnnotation, v1alpha1.ApprovalReasonAnnotation,
}

// checkMinimumTerm refuses a term that no erase can reach: a tenant who misspells it would rely on nothing.
func checkMinimumTerm(c review.Change[v1alpha1.ServerClaim], found *review.Findings) {
	value, set := review.Written(c.Old, c.New, v1alpha1.MinimumTermAnnotation)
	if set && value != string(policyv1alpha1.TermClear) && value != string(policyv1alpha1.TermPurge) {
		found.Deny(field.NotSupported(review.AnnotationsPath.Key(v1alpha1.MinimumTermAnnotation), value,
			[]policyv1alpha1.SanitizationTerm{policyv1alpha1.TermClear, policyv1alpha1.TermPurge}))
	}
}

// checkPriority warns of a priority that counts as another: because it is none, or because the policy in force grants less.
func checkPriority(c review.Change[v1alpha1.ServerClaim], b *bundle.Bundle, found *review.Findings) {
	value, set := review.Written(c.Old, c.New, v1alpha1.PriorityAnnotation)
	if !set {
		return
	}
	number, err := strconv.ParseInt(value, 10, 64)
	asked := policies.PriorityOf(c.New)
	counts := b.Settings.Claims.Priority.Grant(c.New.Namespace, asked)
	var because []string
	if err != nil || number != asked {
		because = append(because, fmt.Sprintf("a priority is a whole number from %d to %d", -policies.MaxPriority, policies.MaxPriority))
	}
	if counts != asked {
		because = append(because, fmt.Sprintf("the policy in force (%s) grants namespace %q no more", b.Revision.Name, c.New.Namespace))
	}
	if len(because) > 0 {
		found.Warn("%s: %q counts as %d; %s",
			review.AnnotationsPath.Key(v1alpha1.PriorityAnnotation), value, counts, strings.Join(because, ", and "))
	}
}
