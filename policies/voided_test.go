// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAVoidedEntryIsNoFact(t *testing.T) {
	for name, c := range map[string]struct {
		change             func(*policyv1alpha1.ServerInventory)
		reported, verified bool
	}{
		"one agent":                     {func(*policyv1alpha1.ServerInventory) {}, true, true},
		"two agents":                    {func(i *policyv1alpha1.ServerInventory) { i.Enrolment.Voided = true }, false, false},
		"two agents in an entry before": {func(i *policyv1alpha1.ServerInventory) { i.Enrolment.Voided, i.Enrolment.Entry = true, 6 }, true, true},
		"a report that says so itself":  {func(i *policyv1alpha1.ServerInventory) { i.Report.Voided = true }, false, true},
		"two agents, and a wipe that failed for that": {func(i *policyv1alpha1.ServerInventory) {
			i.Enrolment.Voided, i.Wipe.State = true, policyv1alpha1.WipeFailed
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := &policyv1alpha1.ServerInventory{Enrolment: &policyv1alpha1.Enrolment{Entry: 7}, Report: &policyv1alpha1.ProbeReport{Entry: 7},
				Wipe: &policyv1alpha1.WipeReport{Entry: 7, State: policyv1alpha1.WipeVerified}}
			c.change(i)
			s := &v1alpha1.Server{}
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7}
			f := Observation{Server: s, Now: time.Now(), Inventory: i}.Facts()
			if got := f.Probe.Complete && f.Probe.Entry == 7; got != c.reported {
				t.Errorf("reported: %t, want %t", got, c.reported)
			}
			if f.Wipe.Verified != c.verified {
				t.Errorf("verified: %t, want %t", f.Wipe.Verified, c.verified)
			}
		})
	}
}
