// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// That a claim is gone is found out while its server is taken back, and the watch has yet to tell.
func TestAGangDoesNotComeTogetherWithAMemberThatWasFoundGone(t *testing.T) {
	w := newWorld(t)
	for _, n := range []string{"0", "1"} {
		w.addServer(aServer("s"+n, writtenFor("db-"+n, "uid-db-"+n)))
		w.addClaim(aClaim("db-"+n, inGang(2)))
	}
	w.deliver(len(w.events))
	w.endClaim(w.claims()[1])
	w.s.suspects.add("s1")
	w.after = func(o client.Object) error {
		if o.GetName() == "s1" {
			return errors.New("injected: the answer got lost")
		}
		return nil
	}
	_ = w.pass()
	w.after = nil
	w.check()
	if c := w.claims()[0]; c.Spec.ServerRef != nil {
		t.Errorf("claim %s names %s, and its gang has nobody else", c.Name, c.Spec.ServerRef.Name)
	}
	w.settle()
	if ref := w.server("s0").Spec.ServerClaimRef; ref != nil {
		t.Errorf("server s0 stays with %s", ref.Name)
	}
}

// The answer to the write that took a member's server back got lost, and the watch has yet to tell.
func TestAGangDoesNotCountOnAServerThatMayBeTakenBack(t *testing.T) {
	w := gangOfThree(t, 3)
	servers := w.servers()
	refused := servers[2].Name
	w.before = func(o client.Object) error {
		if o.GetName() == refused {
			return apierrors.NewConflict(schema.GroupResource{}, refused, errors.New("injected"))
		}
		return nil
	}
	w.after = func(o client.Object) error {
		if s, is := o.(*v1alpha1.Server); is && s.Name == servers[1].Name && s.Spec.ServerClaimRef == nil {
			return errors.New("injected: the answer got lost")
		}
		return nil
	}
	_ = w.pass()
	w.before, w.after = nil, nil
	w.now = w.now.Add(longestWait)
	w.must(w.pass())
	w.check()
	for _, c := range w.claims() {
		if ref := c.Spec.ServerRef; ref != nil && !holds(c, w.server(ref.Name)) {
			t.Errorf("claim %s names %s, which is not written for it", c.Name, ref.Name)
		}
	}
	w.settle()
	if got := len(w.boundClaims()); got != 3 {
		t.Errorf("%d of 3 are bound", got)
	}
}
