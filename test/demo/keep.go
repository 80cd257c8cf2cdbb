// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/metalaw/metalaw/test/env"
)

const (
	// shortLife is a life that says nothing good about the next one.
	shortLife = time.Minute
	// mostCrashes is how often in a row a program may end by itself after a short life.
	mostCrashes = 4
	// firstPause and longestPause bound the time before a program is started again.
	firstPause, longestPause = time.Second, 15 * time.Second
)

// series is what is remembered of the ends of a program that ended although it should run.
type series struct {
	// ends counts the ends in a row after a short life, crashes those of them that nobody outside caused.
	ends, crashes int
}

// after says how long to wait before the program is started again, and whether it is. Whoever kills it from outside may do
// so as often as they like.
func (s *series) after(life time.Duration, killed bool) (time.Duration, bool) {
	if life >= shortLife {
		*s = series{}
	}
	if !killed {
		s.crashes++
	}
	pause := min(firstPause<<min(s.ends, 10), longestPause)
	s.ends++
	return pause, s.crashes < mostCrashes
}

// program is one of ours that is started again when it ends although it should run.
type program struct {
	name  string
	args  []string
	ready func(context.Context) error
}

// keep starts a program again whenever it has ended, and says so. It gives up, and ends the demo, when it crashes again and
// again.
func (w *world) keep(p program, child *env.Child) {
	var lives series
	for began := time.Now(); ; began = time.Now() {
		select {
		case <-child.Done():
		case <-w.life.Done():
			return
		}
		pause, again := lives.after(time.Since(began), child.Killed())
		if w.life.Err() != nil {
			return
		}
		if !again {
			w.report(fmt.Errorf("crashed %d times in a row: %w", mostCrashes, child.Failure()))
			return
		}
		w.announcer.say(fmt.Sprintf("%s, process %d, ended (%s); it is started again in %s", p.name, child.PID(), child.State(), pause))
		select {
		case <-time.After(pause):
		case <-w.life.Done():
			return
		}
		next, err := w.launch(p.name, p.args...)
		if err != nil {
			w.report(err)
			return
		}
		child = next
		w.manager.Store(child)
		w.await(p, child)
	}
}

// await says when a program that was started again is ready. One that has ended is no news: keep sees that.
func (w *world) await(p program, child *env.Child) {
	began := time.Now()
	err := child.AwaitReady(w.life, startLimit, p.ready)
	switch {
	case err == nil:
		w.announcer.say(fmt.Sprintf("%s runs again, as process %d, and was ready after %s", p.name, child.PID(), seconds(time.Since(began))))
	case w.life.Err() == nil && child.Failure() == nil:
		w.report(err)
	}
}

// announcer says what no step asked for, at whatever time.
type announcer struct {
	mu    sync.Mutex
	speak func(string)
}

func (a *announcer) say(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.speak != nil {
		a.speak(text)
	}
}

// through lets it speak another way from now on.
func (a *announcer) through(speak func(string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.speak = speak
}
