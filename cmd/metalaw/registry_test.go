// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

func TestWhoMayReportWithoutAToken(t *testing.T) {
	ref := &v1alpha1.ObjectReference{Namespace: "a", Name: "b"}
	for name, c := range map[string]struct {
		state        v1alpha1.ServerState
		ref          *v1alpha1.ObjectReference
		setting      bool
		report, boot bool
	}{
		"nobody, where the bundle does not say so":                      {v1alpha1.StateReserved, ref, false, false, false},
		"no probe either, where the bundle does not say so":             {v1alpha1.StateDiscovery, ref, false, false, false},
		"the operating system of a claim, its boot state":               {v1alpha1.StateReserved, ref, true, false, true},
		"nothing that runs before there is a boot configuration":        {v1alpha1.StateReserved, nil, true, false, false},
		"a probe, its report and no boot state":                         {v1alpha1.StateDiscovery, ref, true, true, false},
		"nothing on a server that is being wiped":                       {v1alpha1.StateCleanup, ref, true, false, false},
		"nothing on a server whose claim has ended and whose data stay": {v1alpha1.StateReleased, ref, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{Spec: v1alpha1.ServerSpec{BootConfigurationRef: c.ref}, Status: v1alpha1.ServerStatus{State: c.state}}
			settings := bundle.Settings{AllowUnauthenticated: c.setting}
			if got := mayReportUnauthenticated(s, settings); got != c.report {
				t.Errorf("report: got %v", got)
			}
			if got := mayReportBootState(s, settings); got != c.boot {
				t.Errorf("boot state: got %v", got)
			}
		})
	}
}

// The registry stores signs of life for as long as the policies listen for them.
func TestThePoliciesWaitAsLongForAWipeAsTheAPISays(t *testing.T) {
	now := time.Unix(1, 0)
	inventory := &policyv1alpha1.ServerInventory{
		Wipe: &policyv1alpha1.WipeReport{State: policyv1alpha1.WipeRunning, UpdatedAt: metav1.NewMicroTime(now)},
	}
	if got := policies.WipeQuietIn(inventory, now); got != policyv1alpha1.WipeSilence {
		t.Errorf("silent after %s, want %s", got, policyv1alpha1.WipeSilence)
	}
}
