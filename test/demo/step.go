// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// stepLimit is the time a step has unless it says otherwise: long enough for a busy machine.
	stepLimit = 90 * time.Second
	// fleetLimit is the same for a step that all servers take.
	fleetLimit = 3 * time.Minute
	// lookAgain is how often a step looks at what no watch reports, such as an emulated machine.
	lookAgain = 250 * time.Millisecond
)

// step is one thing that is done and what is expected of it.
type step struct {
	// name says what holds when the step is done.
	name string
	// limit is the time it has; zero means stepLimit.
	limit time.Duration
	// do is done once; nil does nothing.
	do func(context.Context) error
	// await says whether what is expected has come; nil expects nothing more. An error ends the demo.
	await func(context.Context) (sight, error)
}

// sight is what a step sees.
type sight struct {
	done bool
	// have of want have come, where that can be counted.
	have, want int
	// seen says in words what is there, for whoever has to find out why the rest does not come.
	seen string
}

// counted is the sight of a step that waits for a number of things.
func counted(have, want int, what string) sight {
	return sight{done: have >= want, have: have, want: want, seen: fmt.Sprintf("%d of %d %s", have, want, what)}
}

// chapter is a part of the story.
type chapter struct {
	title string
	steps []step
}

// teller tells the story, step by step.
type teller struct {
	world    *world
	view     view
	chapters []chapter
	took     []time.Duration
}

func (t *teller) titles() []string {
	titles := make([]string, len(t.chapters))
	for i, c := range t.chapters {
		titles[i] = c.title
	}
	return titles
}

// tell ends at the first step that fails or stalls.
func (t *teller) tell(ctx context.Context) error {
	for i, c := range t.chapters {
		began := time.Now()
		t.view.chapter(i)
		for n, s := range c.steps {
			t.view.step(s.name, n, len(c.steps))
			stepBegan := time.Now()
			if err := t.take(ctx, s); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return t.failure(c, s, time.Since(stepBegan), err)
			}
			t.view.done(s.name, time.Since(stepBegan))
		}
		t.took = append(t.took, time.Since(began))
	}
	return nil
}

// take does one step and waits for what it expects.
func (t *teller) take(ctx context.Context, s step) error {
	limit := s.limit
	if limit == 0 {
		limit = stepLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if s.do != nil {
		if err := s.do(ctx); err != nil {
			return err
		}
	}
	if s.await == nil {
		return nil
	}
	return t.await(ctx, s, limit)
}

// await looks until what the step expects has come: at every change, and now and then.
func (t *teller) await(ctx context.Context, s step, limit time.Duration) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	var last sight
	for {
		changed := t.world.changes()
		now, err := s.await(ctx)
		switch {
		case err == nil && now.done:
			return nil
		case err == nil:
			last = now
			t.view.progress(last)
		case ctx.Err() == nil:
			return err
		case last.seen == "":
			last.seen = err.Error()
		}
		select {
		case <-ctx.Done():
			return &stallError{limit: limit, seen: last.seen}
		case err := <-t.world.broken():
			return err
		case <-changed:
		case <-tick.C:
		}
	}
}

// stallError is a step whose time is over.
type stallError struct {
	limit time.Duration
	seen  string
}

func (e *stallError) Error() string { return "not within " + e.limit.String() }

// failure says which step failed, what was expected, what was seen instead, and where to look.
func (t *teller) failure(c chapter, s step, after time.Duration, cause error) error {
	t.world.keepLogs = true
	what, seen := "failed", cause.Error()
	var stalled *stallError
	if errors.As(cause, &stalled) {
		what, seen = "stalled", stalled.seen
	}
	if seen == "" {
		seen = "nothing of it"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\ndemo: %s after %s in %q\n", what, seconds(after), c.title)
	fmt.Fprintf(&b, "  step      %s\n", s.name)
	if stalled != nil {
		fmt.Fprintf(&b, "  expected  this within %s\n", stalled.limit)
	}
	fmt.Fprintf(&b, "  seen      %s\n", indent(seen, "            "))
	fmt.Fprintf(&b, "  logs      %s", t.world.logDir())
	if config := t.world.kubeconfig(); config != "" && t.world.options.keep {
		fmt.Fprintf(&b, "\n  look      %s", t.world.kubectl("get servers,scl -A"))
	} else if config != "" {
		b.WriteString("\n  look      run it again with --keep, and it stays up after the failure")
	}
	return errors.New(b.String())
}

func indent(text, by string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
