// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/counted"
)

// releasedServer is a server of a claim that ended, with what its record says of counted time.
func releasedServer(record string, change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := held(annotated(v1alpha1.ReleasedClaimAnnotation, "1"), annotated(v1alpha1.ReleasedAtAnnotation, "2026-05-01T11:58:00Z"))
	s.Status.State = v1alpha1.StateReserved
	if record != "" {
		s.Annotations[v1alpha1.ReleasedCountedAnnotation] = record
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func TestAGraceIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		record    string
		clock     counted.Time
		released  bool
		remaining time.Duration
	}{
		"it lasts for five minutes":             {"9h57m", tenHours, false, 2 * time.Minute},
		"then it is over":                       {"9h55m", tenHours, true, 0},
		"without a count it waits":              {"9h55m", 0, false, 5 * time.Minute},
		"a record without a count waits":        {"", tenHours, false, 5 * time.Minute},
		"a record of a count that is lost does": {"11h", tenHours, false, 5 * time.Minute},
		"a release by hand knows none":          {v1alpha1.ReleasedNoGrace, 0, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			released, remaining := Released(releasedServer(c.record), 5*time.Minute, c.clock)
			if released != c.released || remaining != c.remaining {
				t.Errorf("got %v, %s", released, remaining)
			}
		})
	}
}

func TestAReleaseIsSeenOnce(t *testing.T) {
	in := func(state v1alpha1.ServerState) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) { s.Status.State = state }
	}
	unheld := func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		clock  counted.Time
		want   string
	}{
		"a record with a count stays":                        {releasedServer("9h"), tenHours, "9h"},
		"a record of a former build is seen now":             {releasedServer(""), tenHours, "10h0m0s"},
		"and was before, where it is retained":               {releasedServer("", in(v1alpha1.StateReleased)), tenHours, "10h0m0s"},
		"one that is being erased took effect":               {releasedServer("", in(v1alpha1.StateCleanup)), tenHours, "noGrace"},
		"one that holds nothing any more took effect":        {releasedServer("", in(v1alpha1.StateError), unheld), tenHours, "noGrace"},
		"one whose reference was cleared in the grace waits": {releasedServer("", unheld), tenHours, "10h0m0s"},
		"one of a count that is lost is seen now":            {releasedServer("11h"), tenHours, "10h0m0s"},
		"without a count nothing is stored":                  {releasedServer(""), 0, ""},
		"a release by hand stays one":                        {releasedServer("noGrace"), tenHours, "noGrace"},
		"a server without a record gets none":                {held(), tenHours, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.server.Annotations[v1alpha1.ReleasedCountedAnnotation]
			changed := SeeRelease(c.server, c.clock)
			got := c.server.Annotations[v1alpha1.ReleasedCountedAnnotation]
			if got != c.want || changed != (got != before) {
				t.Errorf("got %q, changed %v", got, changed)
			}
			if SeeRelease(c.server, c.clock+counted.Time(time.Hour)) && c.clock != 0 {
				t.Error("it was seen twice")
			}
		})
	}
}

func TestARecordReplacesAFormerOne(t *testing.T) {
	s := releasedServer(v1alpha1.ReleasedNoGrace)
	RecordRelease(s, "2", noon, 0)
	want := map[string]string{v1alpha1.ClaimUIDAnnotation: "2", v1alpha1.ReleasedClaimAnnotation: "2",
		v1alpha1.ReleasedAtAnnotation: "2026-05-01T12:00:00Z"}
	if diff := cmp.Diff(want, s.Annotations); diff != "" {
		t.Errorf("without a count (-want +got)\n%s", diff)
	}
	RecordRelease(s, "3", noon, tenHours)
	if got := s.Annotations[v1alpha1.ReleasedCountedAnnotation]; got != "10h0m0s" {
		t.Errorf("with a count: %q", got)
	}
	if UndoRelease(s); len(s.Annotations) != 1 {
		t.Errorf("undone: %v", s.Annotations)
	}
}

func TestAClockIsEstimatedFromTheLatestRecord(t *testing.T) {
	bare := &v1alpha1.Server{ObjectMeta: held().ObjectMeta}
	if got := EstimatedClock(bare, noon); got != 0 {
		t.Errorf("without records: %s", got)
	}
	s := releasedServer("9h58m")
	s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{}
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{EnteredCounted: counted.Time(time.Hour).Stored()}
	if got := EstimatedClock(s, noon); got != tenHours {
		t.Errorf("got %s", got)
	}
}

func TestHowLongAnOperatingSystemHasToShutDown(t *testing.T) {
	ended := held(annotated(v1alpha1.ReleasedClaimAnnotation, "1"))
	for name, c := range map[string]struct {
		server  *v1alpha1.Server
		power   string
		granted time.Duration
		force   bool
		want    time.Duration
	}{
		"as the setting says once its claim has ended":   {ended, bundle.PowerImmediate, 5 * time.Minute, true, time.Minute},
		"as the rule says while its claim lasts":         {held(), bundle.PowerImmediate, 5 * time.Minute, true, 5 * time.Minute},
		"as the rule says where the grace comes first":   {ended, bundle.PowerAfterGrace, 5 * time.Minute, true, 5 * time.Minute},
		"as the rule says that never forces":             {ended, bundle.PowerImmediate, 5 * time.Minute, false, 5 * time.Minute},
		"no time where the rule has it off by force now": {ended, bundle.PowerImmediate, 0, true, 0},
	} {
		settings := &bundle.Settings{ReleasePower: c.power, ReleaseShutdown: time.Minute}
		if got := EndShutdown(c.server, settings, c.granted, c.force); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
