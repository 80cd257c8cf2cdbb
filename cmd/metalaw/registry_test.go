// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// The registry stores signs of life for as long as the policies listen for them.
func TestThePoliciesWaitAsLongForAWipeAsTheAPISays(t *testing.T) {
	now := time.Unix(1, 0)
	inventory := &policyv1alpha1.ServerInventory{
		Wipe: &policyv1alpha1.WipeReport{State: policyv1alpha1.WipeRunning, UpdatedAt: metav1.NewMicroTime(now)},
	}
	if got := policies.WipeQuietIn(inventory, time.Time{}, now); got != policyv1alpha1.WipeSilence {
		t.Errorf("silent after %s, want %s", got, policyv1alpha1.WipeSilence)
	}
}
