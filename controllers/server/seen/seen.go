// SPDX-License-Identifier: Apache-2.0

// Package seen tells when this process first saw the records of a server, which bear the clocks of other processes.
package seen

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/policies"
)

// Kind is what a record with a time tells of.
type Kind uint8

// The kinds of records.
const (
	Power Kind = iota
	Entry
	Operation
	// Deferred is what of a status waits for the next write.
	Deferred
	// Wipe is the last word of a wipe, which a registry wrote.
	Wipe
	kinds
)

// Records is when this process first saw the latest record of each kind. The zero value saw none.
type Records [kinds]sighting

// sighting is when a record was first seen.
type sighting struct {
	id string
	at policies.Instant
}

// First is when this process first saw a record, on the scale of the clock that shows now.
func (r *Records) First(kind Kind, id string, now policies.Instant) time.Time {
	if r[kind].id != id {
		r[kind] = sighting{id: id, at: now}
	}
	return now.Counted.Moment(now.Now, r[kind].at.Counted, r[kind].at.Now)
}

// NotAhead is the time of a record, and no later than this process first saw it: the clock of another process that
// recorded it may be ahead, and no wait is to last for that.
func (r *Records) NotAhead(kind Kind, id string, recorded time.Time, now policies.Instant) time.Time {
	if first := r.First(kind, id, now); recorded.After(first) {
		return first
	}
	return recorded
}

// RecordedAt is the time of a record on the scale of the clock that shows now: by its count, else as NotAhead tells it.
func (r *Records) RecordedAt(kind Kind, id string, at metav1.MicroTime, c metav1.Duration,
	now policies.Instant) time.Time {
	return now.Counted.Moment(now.Now, counted.From(c), r.NotAhead(kind, id, at.Time, now))
}

// WipeHeard is when this process first saw the last word of a wipe that runs; zero where none does.
func (r *Records) WipeHeard(i *policyv1alpha1.ServerInventory, now policies.Instant) time.Time {
	word := wipeWord(i)
	if word == "" {
		return time.Time{}
	}
	return r.First(Wipe, word, now)
}

// HeardAgain is when the last word of a wipe was first seen, as it is read now; heard is that of the one read before.
func HeardAgain(was, is *policyv1alpha1.ServerInventory, heard, now time.Time) time.Time {
	if wipeWord(is) != wipeWord(was) {
		return now
	}
	return heard
}

// wipeWord names the last word of a wipe that runs; empty where none does.
func wipeWord(i *policyv1alpha1.ServerInventory) string {
	if i == nil || i.Wipe == nil || i.Wipe.State != policyv1alpha1.WipeRunning {
		return ""
	}
	return strconv.FormatInt(i.Wipe.Entry, 10) + "/" + i.Wipe.UpdatedAt.UTC().Format(time.RFC3339Nano)
}
