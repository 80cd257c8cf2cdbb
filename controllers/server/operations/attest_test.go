// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"strings"
	"testing"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

func TestForWhatAPersonMayAnswer(t *testing.T) {
	function := policyv1alpha1.HiddenStorage{Source: "Agent", Address: "0000:03:00.0", PCIID: "1000:0014"}
	drive := policyv1alpha1.HiddenStorage{Source: "Agent", Name: "nvme1", Serial: "S5XXXXX1"}
	clean := func(s *v1alpha1.Server, _ *policyv1alpha1.ServerInventory) { s.Status.Lifecycle.Marks = nil }
	for name, c := range map[string]struct {
		named  string
		change func(*v1alpha1.Server, *policyv1alpha1.ServerInventory)
		// want is what is written, "disk" or "hidden" and its name; refused is part of what is said otherwise.
		want, refused string
	}{
		"a disk":                           {"A", nil, "disk A", ""},
		"hidden storage by its address":    {"0000:03:00.0", nil, "hidden 0000:03:00.0", ""},
		"hidden storage by serial number":  {"s5xxxxx1", nil, "hidden S5XXXXX1", ""},
		"hidden storage of a clean server": {"nvme1", clean, "hidden S5XXXXX1", ""},
		"no disk of a clean server":        {"A", clean, "", "not marked Dirty"},
		"nothing that is not there":        {"Z", nil, "", `lists no disk "Z"; it lists A, and hidden function 0000:03:00.0`},
		"nothing that two are called": {"A", func(_ *v1alpha1.Server, i *policyv1alpha1.ServerInventory) {
			i.Report.Data.Hidden[0].Slot = "A"
		}, "", "names more than one"},
		"not twice": {"nvme1", func(_ *v1alpha1.Server, i *policyv1alpha1.ServerInventory) {
			i.Custody.AttestedHidden = []policyv1alpha1.AttestedHidden{{Serial: "S5XXXXX1", By: "joe"}}
		}, "", "attested already, by joe"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Annotations = map[string]string{v1alpha1.AttestDiskAnnotation: c.named, v1alpha1.AttestMethodAnnotation: "removed",
				v1alpha1.OperationByAnnotation: "jane", v1alpha1.OperationReasonAnnotation: "empty"}
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Marks: []string{policies.MarkDirty}}
			i := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Disks: []policyv1alpha1.CustodyDisk{{WWID: "A"}}},
				Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{Hidden: []policyv1alpha1.HiddenStorage{function, drive}}}}
			if c.change != nil {
				c.change(s, i)
			}
			now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
			answer, why := Attestation(Input{Observation: policies.Observation{Server: s, Inventory: i, Now: now}})
			if (why == "") != (c.refused == "") || !strings.Contains(why, c.refused) {
				t.Fatalf("refused: %q", why)
			}
			if why != "" {
				return
			}
			before := len(i.Custody.Attested) + len(i.Custody.AttestedHidden)
			for range 2 { // a write that is tried again
				answer.Write(i.Custody)
			}
			got := ""
			if len(i.Custody.Attested) > 0 {
				got = "disk " + i.Custody.Attested[0].Key().Value
			}
			for _, a := range i.Custody.AttestedHidden {
				got = "hidden " + a.Address + a.Serial
				if a.By != "jane" || a.Reason != "empty" || a.Method != "removed" || !a.At.Time.Equal(now) {
					t.Errorf("written %+v", a)
				}
			}
			if got != c.want || len(i.Custody.Attested)+len(i.Custody.AttestedHidden) != before+1 {
				t.Errorf("written %q: %+v", got, i.Custody)
			}
		})
	}
}
