// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// TestAGangThatServersAreKeptForIsWokenWhileTheWatchRuns has claims come and go on the watch while passes wake a gang that is short.
func TestAGangThatServersAreKeptForIsWokenWhileTheWatchRuns(t *testing.T) {
	w := gangOfThree(t, 2)
	for i := range 3 { // the fleet has enough
		w.addServer(aServer(fmt.Sprintf("busy%d", i), inState("Cleanup")))
	}
	w.deliver(9)
	w.now = w.now.Add(gangPatience)
	made := func(c *v1alpha1.ServerClaim) { c.CreationTimestamp = metav1.NewTime(w.now) }
	var watch sync.WaitGroup
	stop := make(chan struct{})
	watch.Go(func() {
		for i := 0; ; i++ {
			c := aClaim(fmt.Sprintf("single%d", i%50), made)
			w.s.claimChanged(c)
			w.s.claimGone(c)
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range 200 {
		w.s.pending.wake("uid-db-0")
		if err := w.pass(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	watch.Wait()
	if got := w.onServers(); got != nil {
		t.Errorf("%v are written though the gang is short", got)
	}
}
