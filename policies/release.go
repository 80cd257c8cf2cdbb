// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/counted"
)

// Released says that a durable record names the last holder of a server and that the grace period is over at a counted
// time; otherwise it says how long the grace period still lasts, 0 where there is no record.
func Released(s *v1alpha1.Server, grace time.Duration, clock counted.Time) (released bool, remaining time.Duration) {
	if !v1alpha1.ReleaseRecorded(s) {
		return false, 0
	}
	record := s.Annotations[v1alpha1.ReleasedCountedAnnotation]
	if record == v1alpha1.ReleasedNoGrace || grace <= 0 {
		return true, 0
	}
	age, ok := clock.Since(counted.Parse(record))
	if !ok {
		return false, grace // the leader stores when it first saw the record
	}
	return age >= grace, max(0, grace-age)
}

// ReleaseEffective is when, by the wall clock that the record was made with, the release of a server takes effect, or did;
// false where there is no record, or none that tells. It is only shown.
func ReleaseEffective(s *v1alpha1.Server, grace time.Duration) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339, s.Annotations[v1alpha1.ReleasedAtAnnotation])
	if s.Annotations[v1alpha1.ReleasedCountedAnnotation] == v1alpha1.ReleasedNoGrace {
		grace = 0
	}
	return at.Add(grace).UTC(), err == nil && v1alpha1.ReleaseRecorded(s)
}

// EndShutdown is how long an operating system may take to shut down whose effect grants it a time. Once a claim has ended the
// setting releaseShutdown says so, under releasePower Immediate. What is to be forced at once, or never, stays so.
func EndShutdown(s *v1alpha1.Server, settings *bundle.Settings, granted time.Duration, force bool) time.Duration {
	if granted > 0 && force && settings.ReleasePower == bundle.PowerImmediate && v1alpha1.ReleaseRecorded(s) {
		return settings.ReleaseShutdown
	}
	return granted
}

// SeeRelease stores on a server, once, the counted time at which its release record was first seen, where the record has
// none that counts. A record of a former build that took effect already, or that a person made, has no grace.
func SeeRelease(s *v1alpha1.Server, clock counted.Time) (changed bool) {
	record := s.Annotations[v1alpha1.ReleasedCountedAnnotation]
	if clock == 0 || !v1alpha1.ReleaseRecorded(s) || record == v1alpha1.ReleasedNoGrace {
		return false
	}
	if _, ok := clock.Since(counted.Parse(record)); ok {
		return false
	}
	seen := clock.String()
	unheld := s.Spec.ServerClaimRef == nil && s.Status.State != v1alpha1.StateReserved
	if unheld || s.Status.State == v1alpha1.StateCleanup {
		seen = v1alpha1.ReleasedNoGrace
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ReleasedCountedAnnotation, seen)
	return true
}

// RecordRelease records on a server that a claim ended now; without a counted time the leader adds when it first saw that.
func RecordRelease(s *v1alpha1.Server, claimUID string, now time.Time, clock counted.Time) {
	for name, value := range map[string]string{
		v1alpha1.ClaimUIDAnnotation: claimUID, v1alpha1.ReleasedClaimAnnotation: claimUID,
		v1alpha1.ReleasedAtAnnotation: now.UTC().Format(time.RFC3339),
	} {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, name, value)
	}
	delete(s.Annotations, v1alpha1.ReleasedCountedAnnotation)
	if clock != 0 {
		s.Annotations[v1alpha1.ReleasedCountedAnnotation] = clock.String()
	}
}

// UndoRelease takes the record of a release off a server.
func UndoRelease(s *v1alpha1.Server) {
	for _, name := range []string{
		v1alpha1.ReleasedClaimAnnotation, v1alpha1.ReleasedAtAnnotation, v1alpha1.ReleasedCountedAnnotation,
	} {
		delete(s.Annotations, name)
	}
}
