// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies/index"
)

func server(name, version string) *v1alpha1.Server {
	return &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version}}
}

func TestAFollowerIsToldOfWhatIsThereAndOfEachChangeOnce(t *testing.T) {
	f := New(index.New())
	f.sawServer(server("a", "1"))
	f.sawServer(server("b", "1"))
	var told []string
	f.Follow(func(c index.Change) {
		switch {
		case c.Before == nil && c.After == nil:
			told = append(told, "nothing")
		case c.Before == nil:
			told = append(told, "new "+c.After.Name())
		case c.After == nil:
			told = append(told, "gone "+c.Before.Name())
		default:
			told = append(told, "changed "+c.After.Name())
		}
	})
	slices.Sort(told)
	f.sawServer(server("c", "1"))
	f.sawServer(server("a", "2"))
	f.sawServer(server("a", "1"))
	handler(f.sawServer, f.lostServer).OnDelete(toolscache.DeletedFinalStateUnknown{Obj: server("b", "1")})
	want := []string{"new a", "new b", "new c", "changed a", "nothing", "gone b"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	if !f.HasSynced() || f.WaitForSync(t.Context()) != nil {
		t.Error("an index that is filled by other means is not whole")
	}
}

func TestAnIndexThatIsNotFilledYetIsNotWhole(t *testing.T) {
	f := New(index.New())
	whole := false
	f.synced = []toolscache.InformerSynced{func() bool { return whole }}
	if f.HasSynced() {
		t.Error("it counts as whole")
	}
	whole = true
	if !f.HasSynced() {
		t.Error("it is not whole though it was filled")
	}
}

func TestAFollowerIsToldOfAReportThatIsGone(t *testing.T) {
	f := New(index.New())
	s := server("a", "1")
	s.Spec.SystemUUID = "uuid"
	f.sawServer(s)
	inv := &policyv1alpha1.ServerInventory{Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: "uuid"}, Report: &policyv1alpha1.ProbeReport{}}
	inv.Report.Data.Memory = []policyv1alpha1.MemoryDevice{{SizeBytes: 8 << 30}}
	f.sawInventory(inv)
	var memory []int64
	f.Follow(func(c index.Change) { memory = append(memory, c.After.Candidate().Facts().MemoryGiB) })
	handler(f.sawInventory, f.lostInventory).OnDelete(toolscache.DeletedFinalStateUnknown{Obj: inv})
	if diff := cmp.Diff([]int64{8, 0}, memory); diff != "" {
		t.Error(diff)
	}
}
