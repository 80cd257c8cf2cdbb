// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/seen"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// requested is the last power request with what this process knows of it.
func (v *scope) requested() power.Asked {
	a := power.Asked{Grace: v.PowerGrace, Now: v.now, CountedNow: v.counted}
	a.WasOff = v.server.Status.PowerState == v1alpha1.PowerStateOff
	l := v.server.Status.Lifecycle
	if l == nil {
		return a
	}
	a.Request, a.Entry, a.EnteredAt = l.Request, l.Entry, l.EnteredAt.Time
	if l.Request == nil {
		return a
	}
	id := power.RequestID(l.Request)
	known, r := &v.remembered().seen, l.Request
	a.RecordedAt, a.Job = known.RecordedAt(seen.Power, id, r.AskedAt, r.AskedCounted, v.instant()), v.job(id)
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

// wipeHeard is when this process first saw the last word of a wipe; zero where there is none.
func (v *scope) wipeHeard() time.Time {
	return v.remembered().seen.WipeHeard(v.inventory, v.instant())
}

// instant is the moment of this reconcile by both clocks.
func (v *scope) instant() policies.Instant { return policies.Instant{Now: v.now, Counted: v.counted} }

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
		l.SeenOnAt, l.SeenOnCounted = &at, s.counted.Stored()
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
