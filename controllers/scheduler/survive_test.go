// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
)

// panicking is a policy that cannot cope with one claim.
type panicking struct {
	byName
	claim string
}

func (p panicking) Select(ctx context.Context, c selection.Claim, all []*selection.PreparedCandidate, f selection.Fleet) (selection.Result, error) {
	if c.Name == p.claim {
		panic("injected")
	}
	return p.byName.Select(ctx, c, all, f)
}

func TestWhatGoesWrongWithOneClaimConcernsNoOther(t *testing.T) {
	writing := func(f func()) func(w *world) {
		return func(w *world) {
			w.before = func(o client.Object) error {
				if o.GetName() == "a" {
					f()
				}
				return nil
			}
		}
	}
	failing := func(err error) func(w *world) {
		return func(w *world) {
			w.before = func(o client.Object) error {
				if o.GetName() == "a" {
					return err
				}
				return nil
			}
		}
	}
	for name, tc := range map[string]struct {
		wrong func(w *world)
		want  []string
	}{
		"the policy panics": {func(w *world) {
			w.s.policy = func() (solve.Policy, engine.Revision) { return panicking{claim: "a"}, engine.Revision{} }
		}, []string{"b", "c"}},
		"a write panics":                            {writing(func() { panic("injected") }), []string{"b", "c"}},
		"a write fails for a reason of its own":     {failing(errors.New("injected")), []string{"b", "c"}},
		"a write that gets no answer ends the pass": {failing(&url.Error{Op: "Patch", Err: errors.New("injected")}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i, name := range []string{"a", "b", "c"} {
				w.addServer(aServer(fmt.Sprintf("s%d", i)))
				w.addClaim(aClaim(name))
			}
			w.deliver(9)
			tc.wrong(w)
			if w.pass() == nil {
				t.Error("the pass says that all is well")
			}
			w.check()
			if diff := cmp.Diff(tc.want, w.boundClaims()); diff != "" {
				t.Error(diff)
			}
			w.s.policy = func() (solve.Policy, engine.Revision) { return byName{}, engine.Revision{} }
			w.settle()
			if got := w.boundClaims(); len(got) != 3 {
				t.Errorf("in the end %v are bound", got)
			}
		})
	}
}

func TestAGangOnWhichNothingCanBeDecidedKeepsNothing(t *testing.T) {
	w := gangOfThree(t, 3)
	w.s.policy = func() (solve.Policy, engine.Revision) { return panicking{claim: "db-1"}, engine.Revision{} }
	w.addClaim(aClaim("single"))
	w.deliver(9)
	if w.pass() == nil {
		t.Error("the pass says that all is well")
	}
	if diff := cmp.Diff([]string{"single"}, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
}

// notes is a queue that remembers what it is asked to add later.
type notes struct {
	workqueue.TypedRateLimitingInterface[pass]
	after map[pass]time.Duration
}

func (n notes) AddAfter(p pass, after time.Duration) { n.after[p] = after }

func TestAClaimThatFailsForLongDelaysNoOther(t *testing.T) {
	w := gangOfThree(t, 2)
	w.addServer(aServer("s9"))
	w.addServer(aServer("s8"))
	w.addClaim(aClaim("a", naming("s9")))
	w.deliver(9)
	q := notes{workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[pass]()), map[pass]time.Duration{}}
	defer q.ShutDown()
	w.must(w.s.passes.Start(context.Background(), q))
	w.s.limited[gangKey{"ns", "other"}] = w.now // which is to be looked at again when it has waited for long enough
	w.s.policy = func() (solve.Policy, engine.Revision) { return byName{"s8": "no"}, engine.Revision{} }
	w.before = func(o client.Object) error {
		if o.GetName() == "s9" {
			return errors.New("injected")
		}
		return nil
	}
	if w.pass() == nil {
		t.Fatal("the pass says that all is well")
	}
	if got := q.after[pass{}]; got != limitedFor {
		t.Errorf("the next pass is asked for after %s", got)
	}
}
