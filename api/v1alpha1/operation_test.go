// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAnObjectIsLeftAlone(t *testing.T) {
	const operation, held = v1alpha1.OperationAnnotation, v1alpha1.HeldByBMCAnnotation
	for name, c := range map[string]struct {
		annotations map[string]string
		self        string // what asks for it
		children    bool
	}{
		"not without an annotation":          {nil, "", false},
		"not by an empty value":              {map[string]string{operation: ""}, "", false},
		"not by another operation":           {map[string]string{operation: "park"}, "", false},
		"not by a word that only holds it":   {map[string]string{operation: "do-not-ignore"}, "", false},
		"not by another case":                {map[string]string{operation: "Ignore"}, "", false},
		"by the present word":                {map[string]string{operation: "ignore"}, operation + "=ignore", false},
		"by the old word":                    {map[string]string{operation: "ignore-reconciliation"}, operation + "=ignore-reconciliation", false},
		"by what a parent passed on":         {map[string]string{operation: "ignore-propagated"}, operation + "=ignore-propagated", false},
		"by the old word for that":           {map[string]string{operation: "ignore-reconciliation-propagated"}, operation + "=ignore-reconciliation-propagated", false},
		"by a word that nobody knows":        {map[string]string{operation: "ignored-for-now"}, operation + "=ignored-for-now", false},
		"with its children":                  {map[string]string{operation: "ignore-child"}, operation + "=ignore-child", true},
		"with its children, by the old word": {map[string]string{operation: "ignore-child-reconciliation"}, operation + "=ignore-child-reconciliation", true},
		"with its children and by name":      {map[string]string{operation: "ignore-child-and-self"}, operation + "=ignore-child-and-self", true},
		"likewise, by the old word": {map[string]string{operation: "ignore-child-and-self-reconciliation"},
			operation + "=ignore-child-and-self-reconciliation", true},
		"because its BMC is": {map[string]string{held: "b1"}, operation + " of BMC b1", false},
		"because its BMC is, whatever it is asked": {map[string]string{held: "b1", operation: "force-off-server"},
			operation + " of BMC b1", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
			if got := v1alpha1.IgnoredBy(b); got != c.self || v1alpha1.Ignored(b) != (c.self != "") {
				t.Errorf("left alone by %q, want %q", got, c.self)
			}
			if got := v1alpha1.IgnoresChildren(b); got != c.children {
				t.Errorf("its Servers are left alone: %v", got)
			}
		})
	}
}

func TestAnOperationIsActiveFromWhenItIsRecordedUntilItEnds(t *testing.T) {
	for state, want := range map[v1alpha1.OperationState]bool{"Pending": true, "InProgress": true, "Succeeded": false,
		"Failed": false, "Refused": false} {
		if got := (&v1alpha1.OperationStatus{State: state}).Active(); got != want {
			t.Errorf("%s: got %v", state, got)
		}
	}
	if (*v1alpha1.OperationStatus)(nil).Active() {
		t.Error("no operation is active")
	}
}
