// SPDX-License-Identifier: Apache-2.0

package power

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/redfish"
)

// words say what a request waits for.
var words = map[v1alpha1.PowerAction]string{
	v1alpha1.PowerActionOn:               "the power-on",
	v1alpha1.PowerActionGracefulShutdown: "the shutdown of the operating system",
	v1alpha1.PowerActionForceOff:         "the forced power-off",
}

// Words name a power change in messages.
func Words(action v1alpha1.PowerAction) string { return words[action] }

// LeadsTo is the power state that each action leads to.
var LeadsTo = map[v1alpha1.PowerAction]redfish.PowerState{
	v1alpha1.PowerActionOn:               redfish.PowerOn,
	v1alpha1.PowerActionGracefulShutdown: redfish.PowerOff,
	v1alpha1.PowerActionForceOff:         redfish.PowerOff,
}

// Job is what this process knows of a call to the BMC.
type Job struct {
	// Known says that this process made the call, else nothing besides holds; Running that it has not ended.
	Known, Running bool
	// Err is what it failed with, and Words the same in words that stay alike; both are empty where it did not.
	Err     error
	Words   string
	EndedAt time.Time
}

// Succeeded says that the BMC accepted the call.
func (j Job) Succeeded() bool { return j.Known && !j.Running && j.Err == nil }

// SettingRetry is the time between two attempts to make a setting that a BMC refuses and that holds nothing back.
const SettingRetry = 10 * time.Minute

// SettingPause is how long to leave a setting alone that failed: not long where the BMC was not even asked.
func (j Job) SettingPause() time.Duration {
	if NotAsked(j.Err) {
		return RetryAfter(j.Err)
	}
	return SettingRetry
}

// Asked is the last power request and what this process knows of it.
type Asked struct {
	// Request is the one that is stored; nil where there is none.
	Request *v1alpha1.PowerRequest
	// WasOff says that status shows the machine off.
	WasOff bool
	// RecordedAt is when it was recorded, and no later than this process first saw it.
	RecordedAt time.Time
	Job        Job
	// Entry is the present entry of the lifecycle, and EnteredAt its begin.
	Entry     int64
	EnteredAt time.Time
	// Grace is how long a BMC may take to show what it accepted.
	Grace time.Duration
	Now   time.Time
	// CountedNow is Now in counted time; zero where that is not known.
	CountedNow counted.Time
}

// RequestID names a request among the jobs. A request outlives the entry that made it, because a move does not change what
// the BMC was asked.
func RequestID(r *v1alpha1.PowerRequest) string {
	return string(r.Action) + "/" + r.AskedAt.UTC().Format(time.RFC3339Nano)
}

// Since is the time since the BMC was asked: since it answered, where this process knows that.
func (a Asked) Since() time.Duration {
	asked := a.RecordedAt
	if a.Job.Known && a.Job.EndedAt.After(asked) {
		asked = a.Job.EndedAt
	}
	return a.Now.Sub(asked)
}

// OfFormerEntry says that the request was made before the present entry, and so for another reason. Times tell it only
// where the record does not say: those of two managers are by two clocks.
func (a Asked) OfFormerEntry() bool {
	switch {
	case a.Request == nil:
		return false
	case a.Request.Entry != 0:
		return a.Request.Entry != a.Entry
	}
	return a.Request.AskedAt.Time.Before(a.EnteredAt)
}

// outstanding says that the request has not been seen to come true.
func (a Asked) outstanding() bool { return a.Request != nil && a.Request.ShownAt == nil }

// cutting says that the power is being cut: no operating system is left to ask.
func (a Asked) cutting() bool {
	return a.Request != nil && a.Request.Action == v1alpha1.PowerActionForceOff &&
		(a.Since() < a.Grace || (a.outstanding() && !a.OfFormerEntry()))
}

// unheard says that a request which another process recorded may never have reached the BMC: the grace has passed, and
// nothing shows.
func (a Asked) unheard() bool { return !a.Job.Known && a.Since() >= a.Grace }

// failedWith is what the request failed with; nil where it did not, and where that is not known. What an earlier process
// heard is what was stored.
func (a Asked) failedWith() error {
	if !a.Job.Known && a.Request.RefusedAt != nil {
		return &storedRefusalError{words: a.Request.Refusal}
	}
	return a.Job.Err
}

// failure is failedWith in words.
func (a Asked) failure() string {
	if !a.Job.Known {
		return a.Request.Refusal
	}
	return a.Job.Words
}

// NotDone is what the request failed with that surely did nothing; nil where it may have been done.
func (a Asked) NotDone() error {
	if err := a.failedWith(); !redfish.MayHaveHappened(err) {
		return err
	}
	return nil
}

// Unsolved says that the last power change failed, or that it is not known yet whether it did.
func (a Asked) Unsolved() bool { return a.outstanding() && !a.Job.Succeeded() }

// UnsettledFor is how long the request may still come true where it leads to a power state; 0 where it cannot.
func (a Asked) UnsettledFor(power redfish.PowerState) time.Duration {
	if !a.outstanding() || LeadsTo[a.Request.Action] != power || a.NotDone() != nil {
		return 0
	}
	return max(0, a.Grace-a.Since())
}

// Lapsed is when a request that shows nothing last ran out of time: of its grace, or of the pause before it is repeated. A
// reading begun before that moment may miss a machine that obeyed at the last moment. Zero where nothing has lapsed.
func (a Asked) Lapsed() (at time.Time) {
	if !a.outstanding() || a.NotDone() != nil {
		return at
	}
	since := a.Since()
	for _, limit := range []time.Duration{a.Grace, a.pause(nil)} {
		if since >= limit {
			at = a.Now.Add(limit - since)
		}
	}
	return at
}

// The longest pauses between two power-ons: of one that the BMC accepts and nothing comes of, and of one that it refuses.
const (
	slowestRepeat = 30 * time.Minute
	slowestRetry  = 5 * time.Minute
)

// pause is how long after the request the same may be asked for again; err is what it failed with, where it surely did
// nothing. What a BMC refused in this entry rests for longer with each equal answer.
func (a Asked) pause(err error) time.Duration {
	if err != nil && a.Request.RefusedAt != nil && !a.OfFormerEntry() {
		return max(a.usualPause(err), a.refusedPause())
	}
	return a.usualPause(err)
}

// usualPause doubles for a power-on with each attempt until one comes true; a machine that is to be off is cut off again and
// again.
func (a Asked) usualPause(err error) time.Duration {
	base, longest := a.Grace, slowestRepeat
	var override *redfish.OverrideError
	switch {
	case NotAsked(err):
		return RetryAfter(err)
	case errors.As(err, &override) && !override.Later: // as long as for anything that was accepted and does not show
	case err != nil:
		base, longest = RetryAfter(err), slowestRetry
	}
	if a.Request.Action != v1alpha1.PowerActionOn || a.Request.ShownAt != nil || a.OfFormerEntry() {
		return base
	}
	return max(base, min(base<<min(max(a.Request.Attempts-1, 0), 12), longest))
}

// Attempt counts how often a power-on is asked for in a row, now included. Another state begins anew, and so does a
// request after one that came true; one that the BMC never heard of is not counted.
func (a Asked) Attempt(action v1alpha1.PowerAction) int32 {
	switch {
	case action != v1alpha1.PowerActionOn:
		return 0
	case a.Request == nil || a.Request.Action != action || a.Request.ShownAt != nil || a.OfFormerEntry():
		return 1
	case NotAsked(a.NotDone()):
		return max(a.Request.Attempts, 1)
	}
	return a.Request.Attempts + 1
}

// Shown is the request once the reading shows what was asked, and whether the machine has booted by that. relevant is the
// moment before which a reading says nothing of the request.
func (a Asked) Shown(r Reading, relevant time.Time) (shown, booted bool) {
	if !a.outstanding() || !r.Shows(LeadsTo[a.Request.Action]) || !r.Begun.After(relevant) {
		return false, false
	}
	return true, a.Request.Action == v1alpha1.PowerActionOn && !a.OfFormerEntry() && (a.Request.Attempts > 1 || a.NotDone() == nil)
}

// renewed is the request with which an action is asked for. It repeats the count of refusals of one of the same entry.
func (a Asked) renewed(action v1alpha1.PowerAction) *v1alpha1.PowerRequest {
	at := metav1.NewMicroTime(a.Now.Truncate(time.Microsecond)) // as it is stored, so that the request keeps its id
	request := &v1alpha1.PowerRequest{Action: action, AskedAt: at, AskedCounted: a.CountedNow.Stored(),
		Entry: a.Entry, Attempts: a.Attempt(action),
		Unasked: action != v1alpha1.PowerActionOn && unasked(a.Request, a.WasOff)}
	if a.outstanding() && a.Request.Action == action && !a.OfFormerEntry() {
		request.Refusal, request.Refusals = a.Request.Refusal, a.Request.Refusals
	}
	return request
}
