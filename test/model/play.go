// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// tellLines is how much of a machine's story a report tells.
const tellLines = 90

// outcome is how a plan went.
type outcome struct {
	plan plan
	// carried is how many steps were carried out, in what time.
	carried int
	took    time.Duration
	// broken is the first rule that was broken; nil where none was.
	broken *breach
	story  []string
	// idle are the steps that found nothing to do.
	idle map[int]bool
	// counts tell what came of the steps.
	counts map[string]int
}

// atRest is the rule of what should have come to rest and did not.
const atRest = "everything comes to rest, or says why not"

// play carries a plan out and judges it after every step, and then, unless only the safety rules matter, whether everything comes to
// rest. An error means that it could not be carried out.
func play(ctx context.Context, w *world, p plan, safetyOnly bool) (outcome, error) {
	o := outcome{plan: slices.Clone(p)}
	r, err := newRun(ctx, w)
	if err != nil {
		return o, fmt.Errorf("run %d could not begin: %w", w.runs, err)
	}
	j := &judgement{r: r.log, until: r.log.begun, manager: w.operator}
	begun := time.Now()
	if err := r.found(ctx); err != nil {
		o.broken = r.stuck(j, err)
	}
	for i := range o.plan {
		if o.broken != nil {
			break
		}
		o.plan[i] = r.resolve(ctx, o.plan[i])
		if err := r.perform(ctx, o.plan[i]); err != nil {
			return o, err
		}
		o.carried++
		o.broken = j.judge(r.machines)
	}
	if o.broken != nil { // what broke it may have come first, and is judged later
		if err := r.pause(ctx, after); err != nil {
			return o, err
		}
		o.broken = j.judge(r.machines)
	}
	o.took, o.idle = time.Since(begun), r.idle
	if o.broken == nil {
		o.broken, err = r.conclude(ctx, j, safetyOnly)
	}
	if err == nil && len(w.operator.Failures()) > 0 {
		o.broken = &breach{rule: "the manager does not end by itself", at: time.Now(), text: fmt.Sprint(w.operator.Failures())}
	}
	if o.broken != nil {
		r.log.mu.Lock()
		o.story = r.log.slice(o.broken.machine, j.written[o.broken.machine], tellLines)
		r.log.mu.Unlock()
	}
	if err != nil {
		return o, err
	}
	o.counts = r.log.counts()
	return o, r.leave(ctx)
}

// conclude lets everything come to rest, and judges what happens meanwhile.
func (r *run) conclude(ctx context.Context, j *judgement, safetyOnly bool) (*breach, error) {
	if safetyOnly {
		if err := r.pause(ctx, 2*after); err != nil {
			return nil, err
		}
		return j.judge(r.machines), nil
	}
	if err := r.mend(ctx); err != nil {
		return nil, err
	}
	for _, phase := range []func(context.Context) error{r.rests, r.home} {
		err := phase(ctx)
		if broken := j.judge(r.machines); broken != nil {
			return broken, nil
		}
		if err != nil {
			return r.stuck(j, err), nil
		}
	}
	if err := r.pause(ctx, after); err != nil {
		return nil, err
	}
	return j.judge(r.machines), nil
}

// stuck is the breach that something did not come to rest, unless a worse one is the cause.
func (r *run) stuck(j *judgement, cause error) *breach {
	if broken := j.judge(r.machines); broken != nil {
		return broken
	}
	return &breach{rule: atRest, machine: r.named(cause.Error()), at: time.Now(), text: cause.Error()}
}

// named is the machine that a text speaks of first.
func (r *run) named(text string) string {
	for i, m := range r.machines {
		if strings.Contains(text, fmt.Sprintf("machine %d", i+1)) || strings.Contains(text, serverOf(m.Name())) {
			return m.Name()
		}
	}
	return r.machines[0].Name()
}

// shrinker looks for fewer steps that break the same rule, until the time is over.
type shrinker struct {
	world *world
	best  outcome
	end   time.Time
	say   func(string, ...any)
}

// shrink leaves steps out. Each try takes seconds, so what is likely not to matter goes first: what came after, what did
// nothing, other machines; then halves, quarters, and so on.
func shrink(ctx context.Context, w *world, failed outcome, limit time.Duration, say func(string, ...any)) outcome {
	failed.plan = slices.Clone(failed.plan[:failed.carried])
	s := &shrinker{world: w, best: failed, end: time.Now().Add(limit), say: say}
	busy := plan{}
	for i, step := range failed.plan {
		if !failed.idle[i] {
			busy = append(busy, step)
		}
	}
	s.try(ctx, busy)
	s.try(ctx, slices.DeleteFunc(slices.Clone(s.best.plan), func(one step) bool {
		return strings.HasPrefix(one.String(), "machine") && !strings.HasSuffix(failed.broken.machine, "-"+one.machineName())
	}))
	for size := (len(s.best.plan) + 1) / 2; size > 0 && s.left(); size /= 2 {
		for from := 0; from < len(s.best.plan) && s.left(); {
			if !s.try(ctx, slices.Delete(slices.Clone(s.best.plan), from, min(from+size, len(s.best.plan)))) {
				from += size
			}
		}
	}
	return s.best
}

func (s *shrinker) left() bool { return time.Now().Before(s.end) }

// try plays a plan, and keeps it where it breaks the same rule.
func (s *shrinker) try(ctx context.Context, smaller plan) bool {
	if len(smaller) >= len(s.best.plan) || !s.left() {
		return false
	}
	o, err := play(ctx, s.world, smaller, s.best.broken.rule != atRest)
	if err != nil || o.broken == nil || o.broken.rule != s.best.broken.rule {
		return false
	}
	o.plan = o.plan[:o.carried]
	s.best = o
	s.say("shrunk to %d steps", len(o.plan))
	return true
}

// String is the report of a plan that broke a rule.
func (o outcome) String() string {
	if o.broken == nil {
		return fmt.Sprintf("%d steps in %s", o.carried, o.took.Round(time.Second))
	}
	return fmt.Sprintf("broken: %s\n\nsteps:\n%s\nwhat is known of machine %q, newest last:\n%s",
		o.broken, o.plan, o.broken.machine, strings.Join(o.story, "\n"))
}
