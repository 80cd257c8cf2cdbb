// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
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

// TestAGangThatIsShortIsServedWhileTheWatchRuns has claims come and go on the watch while passes wake a gang that is short.
func TestAGangThatIsShortIsServedWhileTheWatchRuns(t *testing.T) {
	w := gangOfThree(t, 2)
	for i := range 3 { // the fleet has enough
		w.addServer(aServer(fmt.Sprintf("busy%d", i), inState("Cleanup")))
	}
	w.deliver(9)
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

// That a claim is gone is found out while its server is taken back, and the watch has yet to tell, or tells first what was before.
func TestAGangDoesNotComeTogetherWithAMemberThatWasFoundGone(t *testing.T) {
	for name, told := range map[string]int{"before the watch tells anything": 0, "before the watch tells more than an older change": 1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, n := range []string{"0", "1"} {
				w.addServer(aServer("s"+n, writtenFor("db-"+n, "uid-db-"+n)))
				w.addClaim(aClaim("db-"+n, inGang(2)))
			}
			w.deliver(len(w.events))
			leaving := w.claims()[1]
			leaving.Labels = map[string]string{"app": "changed"}
			w.must(w.api.Update(t.Context(), leaving))
			w.shown(leaving)
			w.endClaim(leaving)
			w.s.uncertain.suspect("s1")
			w.after = func(o client.Object) error {
				if o.GetName() == "s1" && told == 0 {
					return errors.New("injected: the answer got lost")
				}
				return nil
			}
			_ = w.pass()
			w.after = nil
			w.deliver(told)
			w.must(w.pass())
			w.check()
			if c := w.claims()[0]; c.Spec.ServerRef != nil {
				t.Errorf("claim %s names %s, and its gang has nobody else", c.Name, c.Spec.ServerRef.Name)
			}
			w.settle()
			if ref := w.server("s0").Spec.ServerClaimRef; ref != nil {
				t.Errorf("server s0 stays with %s", ref.Name)
			}
		})
	}
}

// The write that takes a member's server back got no answer: it was made, or may still be.
func TestAGangDoesNotCountOnAServerThatMayBeTakenBack(t *testing.T) {
	for name, late := range map[string]bool{"at once": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			w := gangOfThree(t, 3)
			version := ""
			givesBack := func(o client.Object) bool {
				s, is := o.(*v1alpha1.Server)
				return is && s.Name == "s1" && s.Spec.ServerClaimRef == nil
			}
			w.before = func(o client.Object) error {
				switch {
				case o.GetName() == "s2":
					return apierrors.NewConflict(schema.GroupResource{}, "s2", errors.New("injected"))
				case givesBack(o) && late:
					version = w.server("s1").ResourceVersion
					return context.DeadlineExceeded
				}
				return nil
			}
			w.after = func(o client.Object) error {
				if givesBack(o) {
					return context.DeadlineExceeded
				}
				return nil
			}
			_ = w.pass()
			w.before, w.after = nil, nil
			w.now = w.now.Add(longestWait)
			w.must(w.pass())
			w.check()
			if s := w.server("s1"); late && s.ResourceVersion == version {
				w.changeServer(s, ForgetBinding)
			}
			for _, c := range w.claims() {
				if ref := c.Spec.ServerRef; ref != nil && !holds(c, w.server(ref.Name)) {
					t.Errorf("claim %s names %s, which is not written for it", c.Name, ref.Name)
				}
			}
			w.settle()
			if got := len(w.boundClaims()); got != 3 {
				t.Errorf("%d of 3 are bound", got)
			}
		})
	}
}
