// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

const endedAtLimit = `gang "db": the search for servers ended at its step limit; it begins anew within a minute; ` +
	`let its members ask for the same, or for less`

func TestAGangWhoseSearchEndsAtItsStepLimitWaitsAMinute(t *testing.T) {
	w := gangOfThree(t, 3)
	w.s.gangSteps = 1
	if again := w.tick(); again != time.Minute {
		t.Errorf("it is looked at again after %s", again)
	}
	for _, c := range w.claims() {
		if v, _ := w.s.Verdict(c.UID); v.Reason != v1alpha1.ReasonGangWaiting || v.Message != endedAtLimit {
			t.Errorf("%s has %s %q", c.Name, v.Reason, v.Message)
		}
	}
	w.s.gangSteps = 0
	w.now = w.now.Add(-time.Second)
	w.s.Wake()
	w.must(w.pass())
	if got := w.boundClaims(); got != nil {
		t.Errorf("%v are bound before the minute is over", got)
	}
	w.now = w.now.Add(time.Second)
	w.must(w.pass())
	if diff := cmp.Diff(allThree, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
}

// One server is reserved when the answer to the next reservation gets lost, and then the search ends at its limit.
func TestAGangThatWaitsForAMinuteGivesBackWhatIsReserved(t *testing.T) {
	for name, conflicts := range map[string]int{"at once": 0, "after its lifecycle wrote to the server at the same time": 2} {
		t.Run(name, func(t *testing.T) {
			w := gangOfThree(t, 3)
			w.before = onlyServer("s1", func(*v1alpha1.Server) error { return errors.New("injected") })
			if w.pass() == nil {
				t.Fatal("the pass says that all is well")
			}
			if diff := cmp.Diff([]string{"s0"}, w.onServers()); diff != "" {
				t.Fatal(diff)
			}
			w.before = onlyServer("s0", func(*v1alpha1.Server) error {
				if conflicts--; conflicts < 0 {
					return nil
				}
				return apierrors.NewConflict(schema.GroupResource{}, "s0", errors.New("injected"))
			})
			w.s.gangSteps = 1
			for began := w.now; w.onServers() != nil && w.now.Sub(began) < time.Minute; w.deliver(len(w.events)) {
				w.tick()
			}
			if v, _ := w.s.Verdict("uid-db-0"); v.Message != endedAtLimit {
				t.Errorf("the claim has %q", v.Message)
			}
			if got := w.onServers(); got != nil || w.s.limited[gangKey{"ns", "db"}].IsZero() {
				t.Errorf("%v stay reserved while the gang waits", got)
			}
			w.check()
		})
	}
}

// The first member names its server, and the others cannot yet when the search ends at its limit.
func TestAGangThatWaitsForAMinuteCompletesWhatIsCommitted(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("s0", writtenFor("db-0", "uid-db-0")))
	w.addServer(aServer("s1", writtenFor("db-1", "uid-db-1")))
	w.addServer(aServer("s2"))
	w.addServer(aServer("s3"))
	w.addClaim(aClaim("db-0", inGang(4), naming("s0")))
	for _, name := range []string{"db-1", "db-2", "db-3"} {
		w.addClaim(aClaim(name, inGang(4)))
	}
	w.deliver(9)
	w.s.gangSteps = 1
	refused := 2
	w.before = func(o client.Object) error {
		if refused--; refused < 0 || o.GetName() != "db-1" {
			return nil
		}
		return apierrors.NewServiceUnavailable("injected")
	}
	for began := w.now; len(w.boundClaims()) < 2 && w.now.Sub(began) < time.Minute; w.deliver(len(w.events)) {
		_ = w.pass()
		w.now = w.now.Add(time.Second)
	}
	if diff := cmp.Diff([]string{"db-0", "db-1"}, w.boundClaims()); diff != "" || refused >= 0 || len(w.s.limited) == 0 {
		t.Error(diff, refused, w.s.limited)
	}
	w.check()
}
