// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestWhatTheBMCSaysOfAMachineMatters(t *testing.T) {
	drive := func(size string) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			capacity := resource.MustParse(size)
			s.Status.Storages = []v1alpha1.Storage{{Drives: []v1alpha1.StorageDrive{{Name: "d", MediaType: "SSD", Capacity: &capacity}}}}
		}
	}
	nic := func(s *v1alpha1.Server) { s.Status.NetworkInterfaces = make([]v1alpha1.NetworkInterface, 2) }
	for name, c := range map[string]struct {
		before, after func(*v1alpha1.Server)
		want          bool
	}{
		"a larger disk":                  {drive("1Ti"), drive("2Ti"), true},
		"the same disk":                  {drive("1Ti"), drive("1Ti"), false},
		"interfaces that were not known": {func(*v1alpha1.Server) {}, nic, true},
		"the disk of a server not to let, in whose place others are counted": {inState("Cleanup"), func(s *v1alpha1.Server) { drive("1Ti")(s); inState("Cleanup")(s) }, true},
	} {
		x := fleetOf(aServer("a", c.before))
		since := x.Get("a").Since()
		change := x.Saw(aServer("a", c.after, at("2")))
		if got := change.Matters(); got != c.want || (x.Get("a").Since() > since) != c.want {
			t.Errorf("%s: matters %t, want %t; since %d, was %d", name, got, c.want, x.Get("a").Since(), since)
		}
	}
}

func TestAReportThatIsForgottenIsKnownNoMore(t *testing.T) {
	inv := &policyv1alpha1.ServerInventory{Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: "uuid-a"}, Report: &policyv1alpha1.ProbeReport{}}
	inv.Report.Data.Memory = []policyv1alpha1.MemoryDevice{{SizeBytes: 8 << 30}}
	x := fleetOf(aServer("a"))
	x.SawInventory(inv)
	if got := x.Get("a").Candidate().Facts().MemoryGiB; got != 8 {
		t.Fatalf("it has %d GiB", got)
	}
	if change := x.ForgetInventory("uuid-a"); !change.Matters() || x.Get("a").Candidate().Facts().MemoryGiB != 0 {
		t.Error("the server still has what was forgotten")
	}
	if change := x.ForgetInventory("uuid-a"); change != (Change{}) {
		t.Error("what was not known is forgotten once more")
	}
}
