// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestADiskForWhichAPersonAnswersNeedNotBeSeen(t *testing.T) {
	answers := func(d disk, method policyv1alpha1.AttestMethod) policyv1alpha1.AttestedDisk {
		return policyv1alpha1.AttestedDisk{CustodyDisk: d, Method: method, By: "jane", Reason: "shredded"}
	}
	a, b := disk{Serial: "a", SizeBytes: 1}, disk{Serial: "b", SizeBytes: 1}
	gone, twin := disk{WWID: "gone", Serial: "g"}, disk{Serial: "b"}
	for name, c := range map[string]struct {
		disks    []disk
		attested []policyv1alpha1.AttestedDisk
		state    policyv1alpha1.WipeState
		says     string
		left     []disk
		recorded []string
	}{
		"one that is out of the machine": {[]disk{a, b, gone}, []policyv1alpha1.AttestedDisk{answers(gone, "destroy")}, "Verified", "",
			[]disk{a, b}, []string{"destroy gone by jane: shredded"}},
		"but one that nobody answers for": {[]disk{a, b, gone}, nil, "Failed", "metalaw server attest", []disk{a, b, gone}, nil},
		"one that is there is erased like any other": {[]disk{a, b}, []policyv1alpha1.AttestedDisk{answers(b, "removed")}, "Verified", "",
			[]disk{a, b}, nil},
		"one of three with a careless serial number": {[]disk{a, b, twin, twin}, []policyv1alpha1.AttestedDisk{answers(twin, "removed")}, "Failed",
			"metalaw server attest", []disk{a, b, twin, twin}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stored := emptyInventory()
				stored.Custody = &policyv1alpha1.Custody{Marks: []string{"Dirty"}, Disks: c.disks, Attested: c.attested}
				w := &wiping{more: []client.Object{stored}}
				w.begin(t, nil, time.Minute, "a", "b")
				w.after(5 * time.Minute)
				w.expect("begin a, end a, begin b, end b", c.state, c.says)
				if diff := cmp.Diff(c.left, w.remembered()); diff != "" {
					t.Errorf("remembered (-want +got):\n%s", diff)
				}
				records := w.records()
				if len(records) != 1 || len(records[0].Spec.Media) != 2 {
					t.Fatalf("got %+v", records)
				}
				var recorded []string
				for _, d := range records[0].Spec.Attested {
					recorded = append(recorded, string(d.Method)+" "+d.Key().Value+" by "+d.By+": "+d.Reason)
				}
				if diff := cmp.Diff(c.recorded, recorded); diff != "" {
					t.Errorf("recorded (-want +got):\n%s", diff)
				}
			})
		})
	}
}
