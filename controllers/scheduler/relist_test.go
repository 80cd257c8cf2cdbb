// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAClaimThatWasMadeAnewWhileTheWatchWasDownReplacesTheOther(t *testing.T) {
	w := newWorld(t)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[pass]())
	defer q.ShutDown()
	old := aClaim("c", inGang(2))
	w.s.claimEvents().Create(context.Background(), event.TypedCreateEvent[*v1alpha1.ServerClaim]{Object: old}, q)
	anew := aClaim("c", inGang(2), func(c *v1alpha1.ServerClaim) { c.UID, c.ResourceVersion = "uid-2", "2" })
	w.s.claimEvents().Update(context.Background(), event.TypedUpdateEvent[*v1alpha1.ServerClaim]{ObjectOld: old, ObjectNew: anew}, q)
	if c, _ := w.s.pending.get("uid-c"); c != nil {
		t.Error("the former claim is still served")
	}
	if c, _ := w.s.pending.get("uid-2"); c == nil {
		t.Error("the new claim is not served")
	}
	members, _ := w.s.pending.members(gangKey{"ns", "db"}, w.s.claims().Priority, w.now)
	var uids []types.UID
	for _, m := range members {
		uids = append(uids, m.claim.UID)
	}
	if len(uids) != 1 || uids[0] != "uid-2" {
		t.Errorf("members of the gang are %v", uids)
	}
}
