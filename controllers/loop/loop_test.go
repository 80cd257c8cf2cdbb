// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestEffectsAreAppliedInOrderUpToTheFirstThatDoesNotHold(t *testing.T) {
	waits := map[string]Progress{"B": Waiting("Because", "of this", time.Second)}
	for name, c := range map[string]struct {
		effects []string
		applied int
		stopped string
	}{
		"all that hold":                        {[]string{"A", "C"}, 2, ""},
		"none after one that waits":            {[]string{"A", "B", "C"}, 2, "B"},
		"none where there is nothing to apply": {nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			applied := 0
			outcome := InOrder(c.effects, func(e string) string { return e }, func(e string) Progress {
				applied++
				return waits[e]
			})
			if applied != c.applied || outcome.Effect != c.stopped {
				t.Errorf("applied %d, stopped at %q", applied, outcome.Effect)
			}
		})
	}
}

func TestTheEarliestWishToLookAgainCounts(t *testing.T) {
	for name, c := range map[string]struct {
		effect, outcome, want time.Duration
	}{
		"the effect's":     {time.Minute, 2 * time.Minute, time.Minute},
		"the outcome's":    {2 * time.Minute, time.Minute, time.Minute},
		"nobody wants to":  {0, 0, 0},
		"one says nothing": {0, time.Hour, time.Hour},
		"two say the same": {time.Hour, time.Hour, time.Hour},
		"a very short one": {time.Hour, time.Millisecond, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := next(Outcome{Again: c.outcome, Progress: Progress{Again: c.effect}})
			if err != nil {
				t.Fatal(err)
			}
			if got := result.RequeueAfter; got < c.want || got > c.want+c.want/10 {
				t.Errorf("looks again in %s, want %s and up to a tenth more", got, c.want)
			}
		})
	}
}

func TestWhatIsInTheMiddleOfItsStepsGoesAheadOfWhatBegins(t *testing.T) {
	for name, c := range map[string]struct {
		again    time.Duration
		progress Progress
		ahead    bool
	}{
		"a move":                           {time.Millisecond, Progress{}, true},
		"a step that is stored":            {0, Waiting("Stored", "", time.Millisecond), true},
		"a machine that takes its time":    {0, Waiting("Booting", "", 5*time.Second), false},
		"an error, whatever went before":   {0, Broken(errors.New("down")), false},
		"a race that was lost to somebody": {0, Broken(apierrors.NewConflict(schema.GroupResource{}, "a", nil)), false},
	} {
		t.Run(name, func(t *testing.T) {
			result, _ := next(Outcome{Again: c.again, Progress: c.progress})
			if result.Priority == nil || (*result.Priority > ordinary) != c.ahead {
				t.Errorf("got %v, want ahead %t", result, c.ahead)
			}
		})
	}
}

func TestALostRaceIsNoError(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "servers"}, "a", errors.New("changed"))
	if result, err := retry(conflict); err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %v, %v", result, err)
	}
	if _, err := retry(errors.New("down")); err == nil {
		t.Error("an API server that is down is an error")
	}
}

func TestWhatCountsAsAChange(t *testing.T) {
	server := func(change func(*v1alpha1.Server)) *v1alpha1.Server {
		s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"rack": "r1"}}}
		change(s)
		return s
	}
	for name, c := range map[string]struct {
		change       func(*v1alpha1.Server)
		main, status bool
	}{
		"nothing":              {func(*v1alpha1.Server) {}, false, false},
		"a label":              {func(s *v1alpha1.Server) { s.Labels["rack"] = "r2" }, true, false},
		"a finalizer":          {func(s *v1alpha1.Server) { s.Finalizers = []string{"x"} }, true, false},
		"the spec":             {func(s *v1alpha1.Server) { s.Spec.Unclaimable = true }, true, false},
		"the status":           {func(s *v1alpha1.Server) { s.Status.State = "Available" }, false, true},
		"an empty map for nil": {func(s *v1alpha1.Server) { s.Annotations = map[string]string{} }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := server(func(*v1alpha1.Server) {}), server(c.change)
			if got := mainChanged(before, after); got != c.main {
				t.Errorf("main changed: %t", got)
			}
			if got := statusChanged(before, after); got != c.status {
				t.Errorf("status changed: %t", got)
			}
		})
	}
}
