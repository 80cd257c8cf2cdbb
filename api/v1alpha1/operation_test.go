// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestIgnored(t *testing.T) {
	for operation, want := range map[string]bool{"ignore": true, "ignore-reconciliation": true, "park": false, "": false} {
		s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.OperationAnnotation: operation}}}
		if got := v1alpha1.Ignored(s); got != want {
			t.Errorf("%q: got %v", operation, got)
		}
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
