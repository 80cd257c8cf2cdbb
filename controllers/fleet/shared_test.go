// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// store is an API server that takes a while to answer a read of the FleetControl: with what it held when the read began.
type store struct {
	client.Reader
	mu     sync.Mutex
	spec   policyv1alpha1.FleetControlSpec
	fails  error
	takes  time.Duration
	begins []time.Duration // when each read began, after start
	start  time.Time
	// generation is that of the stored FleetControl.
	generation int64
}

func (s *store) Get(ctx context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	spec, err, takes, generation := s.spec, s.fails, s.takes, s.generation
	s.begins = append(s.begins, time.Since(s.start))
	s.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	if c, ok := o.(*policyv1alpha1.FleetControl); ok {
		spec.DeepCopyInto(&c.Spec)
		c.Generation = generation
	}
	return err
}

// becomes changes what is stored.
func (s *store) becomes(change func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// reads is how many reads have begun.
func (s *store) reads() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begins
}

func frozen(s *store) {
	s.spec.Freezes = []policyv1alpha1.Freeze{{Name: "night", Level: policyv1alpha1.FreezeAll}}
}

// answer is what a recheck came to, and when.
type answer struct {
	allowed bool
	err     error
	at      time.Duration
}

// rechecking is a gate whose cache shows no freeze, over a store.
type rechecking struct {
	*Gate
	*store
}

func newRechecking(t *testing.T) rechecking {
	t.Helper()
	s := &store{start: time.Now(), takes: 20 * time.Millisecond}
	g := newGate(t, &policyv1alpha1.FleetControlSpec{})
	g.Reader, g.Interval = s, 250*time.Millisecond
	return rechecking{g, s}
}

// asks begins a recheck.
func (r rechecking) asks(ctx context.Context, action Action) <-chan answer {
	got := make(chan answer, 1)
	go func() {
		v, err := r.Recheck(ctx, newServer("s", "a"), action)
		got <- answer{v.Allowed, err, time.Since(r.start)}
	}()
	synctest.Wait()
	return got
}

func TestOneReadAnswersAllThatWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRechecking(t)
		if got := <-r.asks(t.Context(), ForcedOff); !got.allowed || got.at != r.takes {
			t.Errorf("one alone: %+v", got)
		}
		var all []<-chan answer
		for range 100 {
			all = append(all, r.asks(t.Context(), Wipe))
		}
		for _, got := range all {
			if got := <-got; !got.allowed || got.at != 270*time.Millisecond {
				t.Errorf("one of many: %+v", got)
			}
		}
		if reads := r.reads(); len(reads) != 2 || reads[1] != 250*time.Millisecond {
			t.Errorf("reads began at %v", reads)
		}
	})
}

func TestAReadThatBeganBeforeTheQuestionDoesNotAnswerIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRechecking(t)
		r.becomes(func(s *store) { s.takes = time.Second })
		before := r.asks(t.Context(), Wipe)
		r.becomes(frozen)
		after := r.asks(t.Context(), Wipe)
		if got := <-before; !got.allowed {
			t.Errorf("the one that asked before the freeze: %+v", got)
		}
		if got := <-after; got.allowed || got.err != nil || got.at != 1250*time.Millisecond {
			t.Errorf("the one that asked after the freeze: %+v", got)
		}
	})
}

func TestAFreezeThatComesWhileAnEffectWaitsHoldsIt(t *testing.T) {
	for name, c := range map[string]struct {
		action  Action
		allowed bool
	}{
		"a wipe":            {Wipe, false},
		"a power-on":        {PowerOn, false},
		"no setting":        {Setting, true},
		"nor what is noted": {Record, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRechecking(t)
				<-r.asks(t.Context(), Wipe)
				waits := r.asks(t.Context(), c.action)
				r.becomes(frozen)
				if got := <-waits; got.allowed != c.allowed || got.err != nil {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

func TestAReadThatFailsPermitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRechecking(t)
		down := errors.New("etcdserver: leader changed")
		r.becomes(func(s *store) { s.fails = down })
		first, second := r.asks(t.Context(), Wipe), r.asks(t.Context(), PowerOn)
		r.becomes(func(s *store) { s.fails = nil })
		if got := <-first; got.allowed || !errors.Is(got.err, down) {
			t.Errorf("the one whose read failed: %+v", got)
		}
		if got := <-second; !got.allowed || got.err != nil {
			t.Errorf("the one that waited for the next: %+v", got)
		}
		r.becomes(func(s *store) { s.takes = time.Hour })
		if got := <-r.asks(t.Context(), Wipe); got.allowed || !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("no answer: %+v", got)
		}
	})
}

func TestTheEndOfOneWaitEndsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRechecking(t)
		<-r.asks(t.Context(), Wipe)
		ctx, cancel := context.WithCancel(t.Context())
		gives, stays := r.asks(ctx, Wipe), r.asks(t.Context(), Wipe)
		cancel()
		if got := <-gives; got.allowed || !errors.Is(got.err, context.Canceled) || got.at != r.takes {
			t.Errorf("the one that gave up: %+v", got)
		}
		if got := <-stays; !got.allowed || got.err != nil {
			t.Errorf("the one that stayed: %+v", got)
		}
	})
}

func TestPermissionIsGivenByTheCacheAndCountedAtEachCall(t *testing.T) {
	r := newRechecking(t)
	changeControl(t, r.Gate, func(c *policyv1alpha1.FleetControl) {
		c.Spec.Budgets = []policyv1alpha1.Budget{{Name: "one", Action: policyv1alpha1.ActionForcedOff, Max: ptr.To[int32](1)}}
		c.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "b", Level: policyv1alpha1.FreezeAll,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{zone: "b"}}}}
	})
	for _, c := range []struct {
		server *v1alpha1.Server
		reason string
	}{
		{newServer("first", "a"), ""},
		{newServer("second", "a"), v1alpha1.ReasonBudgetExhausted},
		{newServer("covered", "b"), v1alpha1.ReasonFrozen},
	} {
		if v := permit(t, r.Gate, c.server, ForcedOff); v.Reason != c.reason {
			t.Errorf("%s: %+v", c.server.Name, v)
		}
		if v, err := r.Look(t.Context(), c.server, ForcedOff); err != nil || v.Allowed != (c.reason != v1alpha1.ReasonFrozen) {
			t.Errorf("the last look at %s: %+v, %v", c.server.Name, v, err)
		}
	}
	if reads := r.reads(); len(reads) > 0 {
		t.Errorf("%d reads past the cache", len(reads))
	}
}

func TestActionsThatAreRecheckedTogetherWaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRechecking(t)
		r.becomes(func(s *store) {
			s.spec.Freezes = []policyv1alpha1.Freeze{{Name: "night", Level: policyv1alpha1.FreezeMaintenance}}
		})
		v, err := r.Recheck(t.Context(), newServer("s", "a"), Setting, PowerOn, Maintenance)
		if err != nil || v.Allowed || v.Of != Maintenance || len(r.reads()) != 1 {
			t.Errorf("%+v, %v after %d reads", v, err, len(r.reads()))
		}
	})
}

func TestNothingIsAllowedByBudgetsThatCountedByAFormerSpec(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*store)
		want   bool
	}{
		"the cache shows what is stored": {func(*store) {}, true},
		"the cache lags behind":          {func(s *store) { s.generation++ }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRechecking(t)
				r.becomes(c.change)
				if got := <-r.asks(t.Context(), ForcedOff); got.allowed != c.want || got.err != nil {
					t.Errorf("%+v, want allowed %t", got, c.want)
				}
			})
		})
	}
}
