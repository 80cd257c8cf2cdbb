// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
)

// pollShell says how old a reading may be.
type pollShell struct{ *scope }

// readingAge is how old a reading may be: long while the server rests as it should, shorter on its way, where what it waits
// for says so by itself, and very short at first where that is for the BMC to show.
func (v pollShell) readingAge() time.Duration {
	switch {
	case v.justParked():
		return v.shortly()
	case v.server.Status.State == v1alpha1.StateParked: // another program may change its power, and looks for that here
		return min(parkedPoll, v.SteadyPoll)
	case !v.inTransition():
		return v.SteadyPoll
	case v.remembered().awaitsBMC:
		return v.shortly()
	}
	return min(slowestPoll, v.SteadyPoll)
}

// justParked says that the last reading was begun before the server was parked. It is the word on which the machine was handed
// over, and somebody may have switched it on since.
func (v pollShell) justParked() bool {
	return v.server.Status.State == v1alpha1.StateParked && v.Cache.Reading(v.server.Name).Begun.Before(v.remembered().enteredAt(v.server))
}

// ageAfterJob is how old a reading may be that says nothing of the last request to the BMC, and when to look next. Nothing
// is read while the request is under way, nor right after it: a reading would show too little. Then one is taken soon.
func (v pollShell) ageAfterJob(at time.Time, age time.Duration) (maxAge, next time.Duration) {
	left := fastestPoll - v.now.Sub(v.Cache.LastJob(v.server.Name))
	if v.Cache.Busy(v.server.Name) {
		left = slowestPoll // its end tells
	}
	if left > 0 {
		return max(age, v.now.Sub(at)+left), left
	}
	age = min(age, v.shortly())
	return age, age
}

// pollInterval is when to read the BMC again for what waits until it shows something, and has that done.
func (v *scope) pollInterval() time.Duration {
	v.out.awaitsBMC = true
	return v.shortly()
}

// shortly grows with the time since something was asked of the BMC.
func (v *scope) shortly() time.Duration {
	since := v.server.CreationTimestamp.Time
	if l := v.server.Status.Lifecycle; l != nil {
		since = l.EnteredAt.Time
	}
	if since.After(v.now) { // another process entered the state, whose clock is ahead
		return slowestPoll
	}
	at := v.Cache.LastJob(v.server.Name)
	if at.After(v.now) { // a request is under way, or was a moment ago: its end tells
		return slowestPoll
	}
	if at.After(since) {
		since = at
	}
	return min(max(v.now.Sub(since)/3, fastestPoll), slowestPoll)
}

// inTransition says that the server is to leave its state, or that some effect of its state did not hold when we looked
// last.
func (v pollShell) inTransition() bool {
	s := v.server
	if v.bundle == nil {
		return false // nothing moves it
	}
	if s.Status.Lifecycle == nil || !v.bundle.Lifecycle.Stable(engine.State(s.Status.State)) {
		return true
	}
	return s.Status.Operation.Active() || v.remembered().unsettled
}
