// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"context"
	"slices"
	"time"

	"github.com/metalaw/metalaw/redfish"
)

// JobState says how far a job has come.
type JobState uint8

const (
	// JobRunning: the job was begun and has not ended.
	JobRunning JobState = iota + 1
	// JobSucceeded: the BMC accepted what was asked. What it does about it is seen in readings taken afterwards.
	JobSucceeded
	// JobFailed: the BMC refused, or did not answer.
	JobFailed
)

// Job is the outcome of one request to a BMC.
type Job struct {
	ID    string
	State JobState
	Err   error
	// EndedAt is when the job ended; zero while it runs.
	EndedAt time.Time
	// later says that what it asked for shows only after a while.
	later bool
}

// maxJobs bounds how many jobs that have ended are remembered for each subject; the oldest are forgotten first. A subject
// has a handful of kinds of jobs, so that one which still matters is never among those.
const maxJobs = 32

// Do begins a job for a subject unless one of the same id is known, and returns the job as it stands. While another job
// of the subject runs the new one is not begun: that other job is returned, and the caller looks again when woken.
// A job that has ended stays known until Repeat forgets it.
func (d *Cache[S]) Do(name string, target Target, id string, run func(ctx context.Context, bmc redfish.BMC) error) Job {
	return d.do(name, target, &Job{ID: id, State: JobRunning}, run)
}

// DoLater is Do for what takes a while to show: the end of a job that succeeds does not read the subject anew, because
// that would show too little. Whoever waits for it asks for a reading in its own time.
func (d *Cache[S]) DoLater(name string, target Target, id string, run func(ctx context.Context, bmc redfish.BMC) error) Job {
	return d.do(name, target, &Job{ID: id, State: JobRunning, later: true}, run)
}

func (d *Cache[S]) do(name string, target Target, j *Job, run func(ctx context.Context, bmc redfish.BMC) error) Job {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.subject(name)
	s.aim(target)
	for _, known := range s.jobs {
		if known.ID == j.ID || known.State == JobRunning {
			return *known
		}
	}
	if d.closed {
		return *j
	}
	if len(s.jobs) >= maxJobs {
		s.jobs = s.jobs[1:]
	}
	s.jobs = append(s.jobs, j)
	d.flights.Go(func() {
		ctx, cancel := context.WithTimeout(d.base, d.options.Timeout)
		defer cancel()
		d.endJob(name, s, j, target, run(ctx, d.options.Clients.Get(target.Key, target.Endpoint, target.Credentials)))
	})
	return *j
}

// Known returns the job of a subject with that id, if it is remembered.
func (d *Cache[S]) Known(name, id string) (Job, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.subjects[name]; ok {
		for _, j := range s.jobs {
			if j.ID == id {
				return *j, true
			}
		}
	}
	return Job{}, false
}

// Repeat forgets jobs that have ended, so that they can be done again. Ids that are not known are passed over.
func (d *Cache[S]) Repeat(name string, ids ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.subjects[name]
	if !ok {
		return
	}
	kept := s.jobs[:0]
	for _, j := range s.jobs {
		if j.State == JobRunning || !slices.Contains(ids, j.ID) {
			kept = append(kept, j)
		}
	}
	clear(s.jobs[len(kept):])
	s.jobs = kept
}

// endJob reads the subject anew, because a job changes what is true, and wakes it. What shows later is not read for yet.
func (d *Cache[S]) endJob(name string, s *subject[S], j *Job, target Target, err error) {
	d.mu.Lock()
	j.Err, j.EndedAt, j.State = err, d.options.Now(), JobSucceeded
	if err != nil {
		j.State = JobFailed
	}
	if !j.later || err != nil {
		s.waited = true
		if s.inFlight {
			s.again = true
		} else if d.options.Now().After(s.nextTry) {
			d.beginRead(name, s, target)
		}
	}
	closed := d.closed
	d.mu.Unlock()
	if !closed {
		d.options.Wake(name)
	}
}

// LastJob is when the last job of a subject ended, or now while one runs; zero where none is known.
func (d *Cache[S]) LastJob(name string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	var last time.Time
	if s, ok := d.subjects[name]; ok {
		for _, j := range s.jobs {
			if j.State == JobRunning {
				return d.options.Now()
			}
			if j.EndedAt.After(last) {
				last = j.EndedAt
			}
		}
	}
	return last
}

// Busy says that a job of the subject runs, so that none can be begun.
func (d *Cache[S]) Busy(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.subjects[name]
	return ok && slices.ContainsFunc(s.jobs, func(j *Job) bool { return j.State == JobRunning })
}

// Jobs are the jobs of a subject that are remembered.
func (d *Cache[S]) Jobs(name string) []Job {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.subjects[name]
	if !ok {
		return nil
	}
	jobs := make([]Job, 0, len(s.jobs))
	for _, j := range s.jobs {
		jobs = append(jobs, *j)
	}
	return jobs
}
