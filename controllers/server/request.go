// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/redfish"
)

// requested is the last power request with what this process knows of it.
func (v *scope) requested() power.Asked {
	a := power.Asked{Grace: v.PowerGrace, Now: v.now}
	l := v.server.Status.Lifecycle
	if l == nil {
		return a
	}
	a.Request, a.Entry, a.EnteredAt = l.Request, l.Entry, l.EnteredAt.Time
	if l.Request == nil {
		return a
	}
	id := power.RequestID(l.Request)
	a.RecordedAt, a.Job = v.notAhead(powerRecord, id, l.Request.AskedAt.Time), v.job(id)
	return a
}

// job is what this process knows of a call to the BMC.
func (v *scope) job(id string) power.Job {
	known, ok := v.Cache.Known(v.server.Name, id)
	job := power.Job{Known: ok, Running: known.State == hardware.JobRunning, Err: known.Err, EndedAt: known.EndedAt}
	if job.Err != nil {
		job.Words = words(job.Err)
	}
	return job
}

// notAhead is the time of a record, and no later than this process first saw it: the clock of another process that
// recorded it may be ahead, and no wait is to last for that.
func (v *scope) notAhead(kind recordKind, id string, recorded time.Time) time.Time {
	if seen := v.remembered().firstSeen(kind, id, v.now); recorded.After(seen) {
		return seen
	}
	return recorded
}

// record keeps what became of the power request.
func (s powerShell) record() {
	s.recordShown()
	s.recordRefusal()
	s.recordRunning()
}

// recordRefusal keeps what the BMC said when it refused the power change.
func (s powerShell) recordRefusal() {
	if l := s.server.Status.Lifecycle; l != nil {
		l.Request = s.requested().Recorded()
	}
}

// recordShown notes that the machine is as was asked.
func (s powerShell) recordShown() {
	l := s.server.Status.Lifecycle
	if l == nil || l.Request == nil {
		return
	}
	shown, booted := s.requested().Shown(s.powerReading(), s.remembered().askedAt(l.Request.AskedAt.Time))
	at := metav1.NewMicroTime(s.now)
	if shown {
		l.Request.ShownAt = &at
	}
	if booted {
		l.BootedAt = &at
	}
}

// recordRunning notes that the machine was seen on in this entry, so that something may be running on it. It does not ask
// for a credential: a report may come without one.
func (s powerShell) recordRunning() {
	l := s.server.Status.Lifecycle
	if l == nil || l.SeenOnAt != nil {
		return
	}
	if s.shows(redfish.PowerOn) && s.reading.Begun.After(s.remembered().enteredAt(s.server)) {
		at := metav1.NewMicroTime(s.now)
		l.SeenOnAt = &at
	}
}

// jobID names a job by the entry that asks for it, so that one of a former entry is never taken for this one.
func jobID(s *v1alpha1.Server, what string) string {
	return entryText(s.Status.Lifecycle.Entry) + "/" + what
}

// words says what went wrong with a BMC, alike for as long as it is the same.
func words(err error) string {
	message, _ := access.Describe(err)
	return message
}

// isOn says that a power-on was asked for last.
func isOn(request *v1alpha1.PowerRequest) bool {
	return request != nil && request.Action == v1alpha1.PowerActionOn
}
