// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

func TestAWipeIsProvedByTheInventoryAndItsRecord(t *testing.T) {
	for name, c := range map[string]struct {
		inventory func(*policyv1alpha1.ServerInventory)
		record    func(*policyv1alpha1.SanitizationRecord)
		want      string
	}{
		"both agree":                 {want: ""},
		"the wipe runs":              {inventory: func(i *policyv1alpha1.ServerInventory) { i.Wipe.State = policyv1alpha1.WipeRunning }, want: "no verified wipe of entry 7 in the ServerInventory"},
		"the wipe failed":            {inventory: func(i *policyv1alpha1.ServerInventory) { i.Wipe.State = policyv1alpha1.WipeFailed }, want: "no verified wipe of entry 7 in the ServerInventory"},
		"the wipe is of before":      {inventory: func(i *policyv1alpha1.ServerInventory) { i.Wipe.Entry = 6 }, want: "no verified wipe of entry 7 in the ServerInventory"},
		"no wipe":                    {inventory: func(i *policyv1alpha1.ServerInventory) { i.Wipe = nil }, want: "no verified wipe of entry 7 in the ServerInventory"},
		"no record is remembered":    {inventory: func(i *policyv1alpha1.ServerInventory) { i.LastRecord = nil }, want: "no SanitizationRecord of the wipe of entry 7"},
		"the record is another's":    {record: func(r *policyv1alpha1.SanitizationRecord) { r.Spec.Hash = "b" }, want: "no verified wipe of entry 7 in SanitizationRecord u-000001"},
		"the record is of before":    {record: func(r *policyv1alpha1.SanitizationRecord) { r.Spec.Entry = 6 }, want: "no verified wipe of entry 7 in SanitizationRecord u-000001"},
		"the record is of no wipe":   {record: func(r *policyv1alpha1.SanitizationRecord) { r.Spec.State = policyv1alpha1.WipeFailed }, want: "no verified wipe of entry 7 in SanitizationRecord u-000001"},
		"the record is not there":    {record: func(r *policyv1alpha1.SanitizationRecord) { r.Name = "" }, want: "no SanitizationRecord u-000001"},
		"the inventory is not there": {inventory: func(i *policyv1alpha1.ServerInventory) { i.Name = "" }, want: "no ServerInventory"},
	} {
		t.Run(name, func(t *testing.T) {
			i := &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 7, State: policyv1alpha1.WipeVerified},
				LastRecord: &policyv1alpha1.RecordReference{Name: "u-000001", Sequence: 1, Hash: "a"}}
			r := &policyv1alpha1.SanitizationRecord{Spec: policyv1alpha1.SanitizationRecordSpec{Hash: "a", Entry: 7, State: policyv1alpha1.WipeVerified}}
			i.Name, r.Name = "u", "u-000001"
			if c.inventory != nil {
				c.inventory(i)
			}
			if c.record != nil {
				c.record(r)
			}
			if i.Name == "" {
				i = nil
			}
			if r.Name == "" {
				r = nil
			}
			if got := Lacks(7, i, r); got != c.want {
				t.Errorf("Lacks() = %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatClearsDirtyOnTheWordOfAWipe(t *testing.T) {
	wiped := engine.Decision{From: "Cleanup", To: "Available", Rule: "Wiped", Clears: []string{v1alpha1.MarkDirty}}
	for name, c := range map[string]struct {
		change   func(*engine.Decision)
		settings bundle.Settings
		want     bool
	}{
		"a move that clears it":       {func(*engine.Decision) {}, bundle.Settings{}, true},
		"a move that clears nothing":  {func(d *engine.Decision) { d.Clears = nil }, bundle.Settings{}, false},
		"no move":                     {func(d *engine.Decision) { d.To = d.From }, bundle.Settings{}, false},
		"a move that a person forces": {func(d *engine.Decision) { d.Rule = v1alpha1.RuleForced }, bundle.Settings{}, false},
		"a waiver of the policy":      {func(*engine.Decision) {}, bundle.Settings{Sanitization: bundle.SanitizationNone}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := wiped
			c.change(&d)
			if got := Takes(d, c.settings); got != c.want {
				t.Errorf("Takes() = %t, want %t", got, c.want)
			}
		})
	}
}
