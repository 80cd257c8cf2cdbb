// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
)

// script is a scope whose effects end as the script says.
type script struct {
	progress map[string]Progress
	applied  []string
	wake     time.Duration
}

func (s *script) Decide() engine.Decision           { return engine.Decision{} }
func (s *script) Record(engine.Decision, Outcome)   {}
func (s *script) Finalize(context.Context) Progress { return Holds() }
func (s *script) WakeAfter() time.Duration          { return s.wake }
func (s *script) Apply(_ context.Context, e engine.Effect) Progress {
	s.applied = append(s.applied, e.Name)
	return s.progress[e.Name]
}

func ensures(names ...string) engine.Decision {
	var d engine.Decision
	for _, n := range names {
		d.Effects = append(d.Effects, engine.Effect{Name: n})
	}
	return d
}

func TestEffectsAreAppliedInOrderUpToTheFirstThatDoesNotHold(t *testing.T) {
	waits := map[string]Progress{"B": Waiting("Because", "of this", time.Second)}
	halted := ensures("A")
	halted.Halt = &engine.Halt{}
	moving := ensures("A")
	moving.To = "Elsewhere"
	for name, c := range map[string]struct {
		decision engine.Decision
		applied  int
		stopped  string
	}{
		"all that hold":                        {ensures("A", "C"), 2, ""},
		"none after one that waits":            {ensures("A", "B", "C"), 2, "B"},
		"none where the decision is halted":    {halted, 0, ""},
		"none where the decision moves":        {moving, 0, ""},
		"none where there is nothing to apply": {ensures(), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := &script{progress: waits}
			outcome := apply(t.Context(), v, c.decision)
			if len(v.applied) != c.applied || outcome.Effect != c.stopped {
				t.Errorf("applied %v, stopped at %q", v.applied, outcome.Effect)
			}
		})
	}
}

func TestTheEarliestWishToLookAgainCounts(t *testing.T) {
	for name, c := range map[string]struct {
		decision, effect, scope, want time.Duration
	}{
		"the decision's":   {time.Minute, 2 * time.Minute, 3 * time.Minute, time.Minute},
		"the effect's":     {3 * time.Minute, time.Minute, 0, time.Minute},
		"the scope's":      {0, 0, time.Minute, time.Minute},
		"nobody wants to":  {0, 0, 0, 0},
		"one says nothing": {0, time.Hour, 0, time.Hour},
		"two say the same": {time.Hour, time.Hour, 0, time.Hour},
		"a very short one": {time.Millisecond, time.Hour, 0, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := next(&script{wake: c.scope}, engine.Decision{WakeAfter: c.decision}, Outcome{Progress: Progress{Again: c.effect}})
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
		decision engine.Decision
		progress Progress
		ahead    bool
	}{
		"a move":                           {engine.Decision{From: "A", To: "B"}, Progress{}, true},
		"a step that is stored":            {ensures("A"), Waiting("Stored", "", time.Millisecond), true},
		"a machine that takes its time":    {ensures("A"), Waiting("Booting", "", 5*time.Second), false},
		"an error, whatever went before":   {ensures("A"), Broken(errors.New("down")), false},
		"a race that was lost to somebody": {ensures("A"), Broken(apierrors.NewConflict(schema.GroupResource{}, "a", nil)), false},
	} {
		t.Run(name, func(t *testing.T) {
			result, _ := next(&script{}, c.decision, Outcome{Progress: c.progress})
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
