// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// scrapper is a bundle that takes servers out of service and back for any facts.
func scrapper(t *testing.T) *lifecycle.Lifecycle {
	t.Helper()
	l, found, err := lifecycle.Compile("lifecycle.yaml", []byte(`apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Somewhere
define:
  always: lifecycle.entry >= 0
states:
  Somewhere:
    means: Goes out of service at once.
    stable: true
    exits:
    - {rule: Scrapped, to: Decommissioned, when: always}
  Decommissioned:
    means: Comes back at once.
    stable: true
    operations: [recommission]
    exits:
    - {rule: Rescued, to: Somewhere, when: always}
`), Vocabulary())
	if err != nil || found.Err() != nil {
		t.Fatal(err, found)
	}
	return l
}

func TestNoBundleTakesAServerOutOfServiceOrBack(t *testing.T) {
	l := scrapper(t)
	leaving := func(change func(*Facts)) *Facts {
		return free("Somewhere", func(f *Facts) {
			f.Server.Decommission = true
			change(f)
		})
	}
	gone := func(operation string) *Facts {
		return free("Decommissioned", func(f *Facts) { f.Operation.Name = operation })
	}
	for name, c := range map[string]struct {
		facts *Facts
		law   string
	}{
		"one that is off and clean":             {leaving(func(*Facts) {}), ""},
		"that nobody asked for":                 {free("Somewhere", nil), "DecommissionedOnlyAsked"},
		"that runs":                             {leaving(func(f *Facts) { f.BMC.Power = "On" }), "DecommissionedOnlyOff"},
		"of which nobody knows whether it runs": {leaving(func(f *Facts) { f.BMC.Power = "Unknown" }), "DecommissionedOnlyOff"},
		"that a claim is written on":            {leaving(func(f *Facts) { f.Server.ClaimRefSet = true }), "DecommissionedUnclaimed"},
		"that may hold data":                    {leaving(func(f *Facts) { f.Lifecycle.Marks = []string{MarkDirty} }), "DecommissionedClean"},
		"but not where a person answers for its disks": {leaving(func(f *Facts) {
			f.Lifecycle.Marks, f.Wipe.Attested = []string{MarkDirty}, true
		}), ""},
		"and back where nobody asks":    {gone(none), "DecommissionedUntilAsked"},
		"and back by another operation": {gone(OperationUnpark), "DecommissionedUntilAsked"},
		"but where somebody does":       {gone(OperationRecommission), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := l.Decide(c.facts)
			if c.law == "" && (d.Halt != nil || !d.Moves()) {
				t.Fatalf("it stays in %s, halted by %+v", d.To, d.Halt)
			}
			if c.law != "" && (d.Halt == nil || d.Halt.Cause != engine.HaltSafety || !strings.Contains(d.Halt.Message, c.law)) {
				t.Fatalf("it goes to %s, halted by %+v", d.To, d.Halt)
			}
		})
	}
}

func TestWhenNoWipeIsNeeded(t *testing.T) {
	known := func(attested int) *policyv1alpha1.ServerInventory {
		i := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Disks: []policyv1alpha1.CustodyDisk{{WWID: "a"}, {WWID: "b"}}}}
		for _, d := range i.Custody.Disks[:attested] {
			i.Custody.Attested = append(i.Custody.Attested, policyv1alpha1.AttestedDisk{CustodyDisk: d})
		}
		return i
	}
	holder := func(i *policyv1alpha1.ServerInventory) *policyv1alpha1.ServerInventory {
		i.Custody.LastHolder = &policyv1alpha1.Holder{}
		return i
	}
	released := map[string]string{v1alpha1.ClaimUIDAnnotation: "u", v1alpha1.ReleasedClaimAnnotation: "u", v1alpha1.ReleasedAtAnnotation: noon.Add(-time.Hour).Format(time.RFC3339)}
	for name, c := range map[string]struct {
		inventory *policyv1alpha1.ServerInventory
		notes     map[string]string
		want      bool
	}{
		"every disk of a machine that nobody held":    {known(2), nil, true},
		"every disk of one whose holder was released": {holder(known(2)), released, true},
		"not where one disk is left":                  {known(1), nil, false},
		"not where the holder was not released":       {holder(known(2)), map[string]string{v1alpha1.ClaimUIDAnnotation: "u"}, false},
		"not where only the inventory names a holder": {holder(known(2)), nil, false},
		"not where no disk is known":                  {&policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{}}, nil, false},
		"not where nothing is known":                  {nil, nil, false},
	} {
		o := Observation{Server: &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Annotations: c.notes}}, Now: noon, Inventory: c.inventory}
		if got := o.Facts().Wipe.Attested; got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
