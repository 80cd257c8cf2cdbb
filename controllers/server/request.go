// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// A power change goes through these steps, so that no crash makes the BMC hear it twice:
//
//  1. it is recorded in status.lifecycle.request, under the optimistic lock, by which nothing else changed meanwhile;
//  2. once that is stored the BMC is asked, in the background;
//  3. it is over when a reading shows it. Until PowerGrace has passed since it was recorded nobody asks again, whether or
//     not this process knows what the BMC answered; afterwards only a reading begun since that still shows the old state
//     asks again, a power-on after twice that pause each further time.

// askedWords say what a request waits for.
var askedWords = map[v1alpha1.PowerAction]string{
	v1alpha1.PowerActionOn:               "the power-on",
	v1alpha1.PowerActionGracefulShutdown: "the shutdown of the operating system",
	v1alpha1.PowerActionForceOff:         "the forced power-off",
}

// shownAs is the power state that a request leads to.
var shownAs = map[v1alpha1.PowerAction]redfish.PowerState{
	v1alpha1.PowerActionOn:               redfish.PowerOn,
	v1alpha1.PowerActionGracefulShutdown: redfish.PowerOff,
	v1alpha1.PowerActionForceOff:         redfish.PowerOff,
}

// askOnce asks the BMC for a power change and waits until it shows.
func (v *scope) askOnce(ctx context.Context, action v1alpha1.PowerAction, run func(context.Context, redfish.BMC) error) loop.Progress {
	what := askedWords[action]
	if v.Cache.Busy(v.server.Name) {
		return loop.Waiting(waitsForPower, "the BMC to answer a request, before "+what, 0)
	}
	v.recordRefusal() // before the request is repeated, and because the pause depends on it
	if request := v.server.Status.Lifecycle.Request; request != nil && request.Action == action {
		err := v.notDone(request)
		if left := v.pause(request, err) - v.since(request); left > 0 && err != nil {
			return failedRequest(what, err, left)
		} else if left > 0 {
			return loop.Waiting(waitsForPower, what+asOften(request.Attempts)+" to show", min(v.pollInterval(), left))
		}
	}
	if p, ok := v.powerKnown(); !ok {
		return p
	}
	actions := v.actionsOf(action)
	if p, ok := v.permitted(ctx, actions...); !ok {
		return p
	}
	at := metav1.NewMicroTime(v.now.Truncate(time.Microsecond)) // as it is stored, so that the request keeps its id
	v.memory.ask(v.server.Name, at.Time)
	former := v.server.Status.Lifecycle.Request
	v.server.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: action, AskedAt: at,
		Entry: v.server.Status.Lifecycle.Entry, Attempts: v.attempt(action)}
	v.carryRefusals(former, v.server.Status.Lifecycle.Request)
	if action == v1alpha1.PowerActionOn {
		v.watchBoot()
	}
	for _, a := range actions {
		fleet.Begin(v.server.Status.Lifecycle, a, at)
	}
	id, guarded := requestID(v.server.Status.Lifecycle.Request), v.guarded(run, actions...)
	v.commit = func() { v.Cache.DoLater(v.server.Name, v.target, id, guarded) }
	return loop.Waiting(waitsForPower, what+" to be accepted", 0)
}

// The longest pauses between two power-ons: of one that the BMC accepts and nothing comes of, and
// of one that it refuses.
const (
	slowestRepeat = 30 * time.Minute
	slowestRetry  = 5 * time.Minute
)

// pause is how long after a request the same may be asked for again; err is what it failed with, where it surely did
// nothing. What a BMC refused in this entry rests for longer with each equal answer.
func (v *scope) pause(request *v1alpha1.PowerRequest, err error) time.Duration {
	if err != nil && request.RefusedAt != nil && !v.ofFormerEntry(request) {
		return max(v.usualPause(request, err), v.refusedPause(request.Refusals))
	}
	return v.usualPause(request, err)
}

// usualPause doubles for a power-on with each attempt until one comes true; a machine that is to be off is cut off again and
// again.
func (v *scope) usualPause(request *v1alpha1.PowerRequest, err error) time.Duration {
	base, longest := v.PowerGrace, slowestRepeat
	var override *redfish.OverrideError
	switch {
	case notAsked(err):
		return retryAfter(err)
	case errors.As(err, &override) && !override.Later: // as long as for anything that was accepted and does not show
	case err != nil:
		base, longest = retryAfter(err), slowestRetry
	}
	if request.Action != v1alpha1.PowerActionOn || request.ShownAt != nil || v.ofFormerEntry(request) {
		return base
	}
	return max(base, min(base<<min(max(request.Attempts-1, 0), 12), longest))
}

// attempt counts how often a power-on is asked for in a row, now included. Another state begins anew, and so does a
// request after one that came true; one that the BMC never heard of is not counted.
func (v *scope) attempt(action v1alpha1.PowerAction) int32 {
	former := v.server.Status.Lifecycle.Request
	switch {
	case action != v1alpha1.PowerActionOn:
		return 0
	case former == nil || former.Action != action || former.ShownAt != nil || v.ofFormerEntry(former):
		return 1
	case notAsked(v.notDone(former)):
		return max(former.Attempts, 1)
	}
	return former.Attempts + 1
}

func asOften(attempts int32) string {
	if attempts < 2 {
		return ""
	}
	return fmt.Sprintf(", asked for %d times,", attempts)
}

// actionsOf is what a power change amounts to: to boot the wipe image is to wipe.
func (v *scope) actionsOf(action v1alpha1.PowerAction) []fleet.Action {
	if action == v1alpha1.PowerActionGracefulShutdown {
		return []fleet.Action{fleet.Shutdown}
	}
	if action == v1alpha1.PowerActionForceOff {
		return []fleet.Action{fleet.ForcedOff}
	}
	if v.boot != nil && v.boot.Annotations[v1alpha1.BootPurposeAnnotation] == v1alpha1.BootPurposeWipe {
		return []fleet.Action{fleet.Wipe, fleet.PowerOn}
	}
	return []fleet.Action{fleet.PowerOn}
}

// repeat makes a recorded request again that surely did nothing.
func (v *scope) repeat(ctx context.Context, request *v1alpha1.PowerRequest, err error, action fleet.Action,
	run func(context.Context, redfish.BMC) error) loop.Progress {
	if left := retryAfter(err) - v.since(request); left > 0 {
		return failedRequest(askedWords[request.Action], err, left)
	}
	return v.askAgain(ctx, request, action, run)
}

// askAgain asks for what is recorded already.
func (v *scope) askAgain(ctx context.Context, request *v1alpha1.PowerRequest, action fleet.Action,
	run func(context.Context, redfish.BMC) error) loop.Progress {
	if p, ok := v.powerKnown(); !ok {
		return p
	}
	if p, ok := v.permitted(ctx, action); !ok {
		return p
	}
	v.Cache.Repeat(v.server.Name, requestID(request))
	v.Cache.DoLater(v.server.Name, v.target, requestID(request), v.guarded(run, action))
	return loop.Waiting(waitsForPower, askedWords[request.Action]+" to be accepted", 0)
}

// afterwards has the BMC asked for something once the record of it is stored.
func (v *scope) afterwards(id string, run func(context.Context, redfish.BMC) error, actions ...fleet.Action) {
	v.commit = func() {
		v.Cache.Repeat(v.server.Name, id) // one that was put off is known, and forgotten only now that it is recorded anew
		v.Cache.Do(v.server.Name, v.target, id, v.guarded(run, actions...))
	}
}

// Commits implements loop.Committer.
func (v *scope) Commits() bool { return v.commit != nil }

// Commit implements loop.Committer.
func (v *scope) Commit() { v.commit() }

// since is the time since the BMC was asked: since it answered, where this process knows that.
func (v *scope) since(request *v1alpha1.PowerRequest) time.Duration {
	asked := v.recordedAt(request)
	if job, known := v.Cache.Known(v.server.Name, requestID(request)); known && job.EndedAt.After(asked) {
		asked = job.EndedAt
	}
	return v.now.Sub(asked)
}

// recordedAt is when a request was recorded; see notAhead.
func (v *scope) recordedAt(request *v1alpha1.PowerRequest) time.Time {
	return v.notAhead(powerRecord, requestID(request), request.AskedAt.Time)
}

// notAhead is the time of a record, and no later than this process first saw it: the clock of another process that
// recorded it may be ahead, and nobody is to wait for that.
func (v *scope) notAhead(kind recordKind, id string, recorded time.Time) time.Time {
	if seen := v.memory.firstSeen(v.server.Name, kind, id, v.now); recorded.After(seen) {
		return seen
	}
	return recorded
}

// lapsed is when a request that shows nothing last ran out of time: of its grace, or of the pause before it is repeated. A
// reading begun before that moment may miss a machine that obeyed at the last moment. Zero where nothing has lapsed.
func (v *scope) lapsed() (at time.Time) {
	l := v.server.Status.Lifecycle
	if l == nil || l.Request == nil || l.Request.ShownAt != nil || v.notDone(l.Request) != nil {
		return at
	}
	since := v.since(l.Request)
	for _, limit := range []time.Duration{v.PowerGrace, v.pause(l.Request, nil)} {
		if since >= limit {
			at = v.now.Add(limit - since)
		}
	}
	return at
}

// unheard says that a request which another process recorded may never have reached the BMC: PowerGrace has passed, and
// nothing shows.
func (v *scope) unheard(request *v1alpha1.PowerRequest) bool {
	_, known := v.Cache.Known(v.server.Name, requestID(request))
	return !known && v.since(request) >= v.PowerGrace
}

// failedWith is what a request failed with; nil where it did not, and where that is not known. What an earlier process heard
// is what was stored.
func (v *scope) failedWith(request *v1alpha1.PowerRequest) error {
	job, known := v.Cache.Known(v.server.Name, requestID(request))
	switch {
	case known && job.State == hardware.JobFailed:
		return job.Err
	case !known && request.RefusedAt != nil:
		return &storedRefusalError{words: request.Refusal}
	}
	return nil
}

// notDone is what a request failed with that surely did nothing; nil where it may have been done.
func (v *scope) notDone(request *v1alpha1.PowerRequest) error {
	if err := v.failedWith(request); !redfish.MayHaveHappened(err) {
		return err
	}
	return nil
}

// failedRequest says why a power change was not made, and that it is asked for again after a while.
func failedRequest(what string, err error, left time.Duration) loop.Progress {
	var override *redfish.OverrideError
	if errors.As(err, &override) {
		return loop.Failing(overrideIgnored, what+": "+words(err), left)
	}
	return loop.Failing(requestFailed, what+": "+words(err), left)
}

// unsolved says that the last power change failed, or that it is not known yet whether it did.
func (v *scope) unsolved() bool {
	l := v.server.Status.Lifecycle
	if l == nil || l.Request == nil || l.Request.ShownAt != nil {
		return false
	}
	job, known := v.Cache.Known(v.server.Name, requestID(l.Request))
	return !known || job.State != hardware.JobSucceeded
}

// outstanding waits for a request that may still lead to the power state given, though the machine shows the other one
// now: a BMC may take a while to do what it accepted.
func (v *scope) outstanding(power redfish.PowerState) loop.Progress {
	if left := v.unsettledFor(power); left > 0 {
		what := askedWords[v.server.Status.Lifecycle.Request.Action]
		return loop.Waiting(waitsForPower, what+" that was asked for to show or to lapse", min(v.pollInterval(), left))
	}
	return loop.Holds()
}

// unsettledFor is how long a request that leads to a power state may still come true; 0 where there is none.
func (v *scope) unsettledFor(power redfish.PowerState) time.Duration {
	l := v.server.Status.Lifecycle
	if l == nil || l.Request == nil || l.Request.ShownAt != nil || shownAs[l.Request.Action] != power || v.notDone(l.Request) != nil {
		return 0
	}
	return max(0, v.PowerGrace-v.since(l.Request))
}

// recordShown notes that the machine is as was asked.
func (v *scope) recordShown() {
	l := v.server.Status.Lifecycle
	if l == nil || l.Request == nil || l.Request.ShownAt != nil || v.facts.BMC.Identity != policies.IdentitySame {
		return
	}
	if v.shows(shownAs[l.Request.Action]) && v.reading.Begun.After(v.memory.askedAt(v.server.Name, l.Request.AskedAt.Time)) {
		at := metav1.NewMicroTime(v.now)
		l.Request.ShownAt = &at
		if l.Request.Action == v1alpha1.PowerActionOn && !v.ofFormerEntry(l.Request) && v.mayHaveBooted(l.Request) {
			l.BootedAt = &at
		}
	}
}

// mayHaveBooted says that a power-on, or one before it that did not show in time, may be what the machine is on for.
func (v *scope) mayHaveBooted(request *v1alpha1.PowerRequest) bool {
	return request.Attempts > 1 || v.notDone(request) == nil
}

// recordRunning notes that the machine was seen on in this entry, so that something may be running on it. It does not ask
// for a credential: a report may come without one.
func (v *scope) recordRunning() {
	l := v.server.Status.Lifecycle
	if l == nil || l.SeenOnAt != nil {
		return
	}
	if v.shows(redfish.PowerOn) && v.reading.Begun.After(v.memory.enteredAt(v.server)) {
		at := metav1.NewMicroTime(v.now)
		l.SeenOnAt = &at
	}
}

// requestID names a request among the cache's jobs. A request outlives the entry that made it, because a move does not
// change what the BMC was asked.
func requestID(r *v1alpha1.PowerRequest) string {
	return string(r.Action) + "/" + r.AskedAt.UTC().Format(time.RFC3339Nano)
}

// jobID names a job by the entry that asks for it, so that one of a former entry is never taken for this one.
func (v *scope) jobID(what string) string {
	return entryText(v.server.Status.Lifecycle.Entry) + "/" + what
}

// retryAfter is how long to leave a BMC alone that refused a request: as long as it asks, and never less than a while; a
// shorter one where it was not even asked.
func retryAfter(err error) time.Duration {
	const unasked, least = 2 * time.Second, 15 * time.Second
	if notAsked(err) {
		return unasked
	}
	var refused *redfish.ResponseError
	switch {
	case !errors.As(err, &refused):
		return least
	case refused.Method == http.MethodGet:
		return max(unasked, refused.RetryAfter)
	}
	return max(least, refused.RetryAfter)
}

// words says what went wrong with a BMC, alike for as long as it is the same.
func words(err error) string {
	message, _ := access.Describe(err)
	return message
}
