// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/admission"
)

// Rules is the part of a bundle that forbids objects; *admission.Policy is one.
type Rules interface {
	// Standing returns what forbids an object that is stored. An error means that nothing is known.
	Standing(ctx context.Context, kind string, object map[string]any) ([]admission.Finding, error)
}

// Forbids asks the rules of a revision again about a claim that is stored, as if it were created now. One that had its
// server before is not held to them: the scheduler wrote serverRef, and no user could take it out. The reason is that
// of the claim's condition Bound, and the words say what to mend; both are empty where nothing forbids it.
func Forbids(ctx context.Context, rules Rules, revision string, c *v1alpha1.ServerClaim) (reason, words string) {
	if HadServer(c) {
		return "", ""
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return v1alpha1.ReasonGuardError, fmt.Sprintf("policy %s cannot be asked about the claim: %v", revision, err)
	}
	object["apiVersion"], object["kind"] = v1alpha1.GroupVersion.String(), "ServerClaim"
	delete(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
	denials, err := rules.Standing(ctx, "ServerClaim", object)
	if err != nil {
		return v1alpha1.ReasonGuardError, fmt.Sprintf("policy %s could not decide whether there may be such a claim: %v", revision, err)
	}
	if len(denials) == 0 {
		return "", ""
	}
	all := make([]string, len(denials))
	for i, d := range denials {
		if d.Field != "" {
			d.Message = d.Field + ": " + d.Message
		}
		all[i] = fmt.Sprintf("%s [%s]", d.Message, d.Code)
	}
	return v1alpha1.ReasonClaimDenied, fmt.Sprintf("policy %s forbids the claim: %s", revision, strings.Join(all, "; "))
}

// HadServer says that a claim had its server once, by the word of its status.
func HadServer(c *v1alpha1.ServerClaim) bool {
	told := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionBound)
	return c.Status.Phase == v1alpha1.PhaseBound || told != nil &&
		(told.Reason == v1alpha1.ReasonBindingLost || told.Reason == v1alpha1.ReasonServerVanished)
}

var _ Rules = &admission.Policy{}
