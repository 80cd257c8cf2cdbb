// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/spelling"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/webhooks/review"
)

// annotationPrefix begins the annotations that are metalaw's own.
const annotationPrefix = "policy.metalaw.dev/"

// claimAnnotations are those of annotationPrefix that are read on a ServerClaim; the manager writes that of the operation's ID.
var claimAnnotations = []string{
	v1alpha1.MinimumTermAnnotation, v1alpha1.PriorityAnnotation, v1alpha1.PlacementAnnotation, v1alpha1.ProtectAnnotation,
	v1alpha1.OperationIDAnnotation, v1alpha1.DrainRequiredAnnotation,
}

// checkAnnotationNames warns of an annotation that looks like one of metalaw's and that it does not read of a kind: who misspells protect
// has no protection. A rule of the bundle may read it, so that it is not refused.
func checkAnnotationNames[T any, P interface {
	*T
	client.Object
}](before, after *T, kind string, known []string, found *review.Findings,
) {
	for _, key := range slices.Sorted(maps.Keys(P(after).GetAnnotations())) {
		if !strings.HasPrefix(key, annotationPrefix) || slices.Contains(known, key) {
			continue
		}
		if before != nil {
			if _, had := P(before).GetAnnotations()[key]; had {
				continue
			}
		}
		found.Warn("%s: nothing reads this annotation of a %s; %s", review.AnnotationsPath.Key(key), kind, meantAnnotation(key, known))
	}
}

// meantAnnotation offers what somebody meant: the nearest name, or one of which the first letters are written; else it tells all.
func meantAnnotation(key string, known []string) string {
	word := strings.ToLower(strings.TrimPrefix(key, annotationPrefix))
	var all []string
	for _, k := range known {
		all = append(all, strings.TrimPrefix(k, annotationPrefix))
	}
	near := spelling.Nearest(word, all)
	for _, name := range all {
		if near == "" && len(word) > 2 && strings.HasPrefix(name, word) {
			near = name
		}
	}
	if near == "" {
		return "known are " + strings.Join(known, ", ")
	}
	return "did you mean " + annotationPrefix + near + "?"
}

// checkMinimumTerm refuses a term that no erase can reach: a tenant who misspells it would rely on nothing.
func checkMinimumTerm(c review.Change[v1alpha1.ServerClaim], found *review.Findings) {
	value, set := written(c.Old, c.New, v1alpha1.MinimumTermAnnotation)
	if set && value != string(policyv1alpha1.TermClear) && value != string(policyv1alpha1.TermPurge) {
		found.Deny(field.NotSupported(review.AnnotationsPath.Key(v1alpha1.MinimumTermAnnotation), value,
			[]policyv1alpha1.SanitizationTerm{policyv1alpha1.TermClear, policyv1alpha1.TermPurge}))
	}
}

// checkPriority warns of a priority that counts as another: because it is none, or because the policy in force grants less.
func checkPriority(c review.Change[v1alpha1.ServerClaim], b *bundle.Bundle, found *review.Findings) {
	value, set := written(c.Old, c.New, v1alpha1.PriorityAnnotation)
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
