// SPDX-License-Identifier: Apache-2.0

package counted_test

import (
	"testing"
	"time"

	"github.com/metalaw/metalaw/internal/counted"
)

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// process is a process whose monotonic clock a test turns.
type process struct {
	*counted.Clock
	ran time.Duration
}

func newProcess() *process {
	p := &process{}
	p.Clock = counted.NewClock(start, func() time.Duration { return p.ran })
	return p
}

func TestALeaderContinuesTheStoredCount(t *testing.T) {
	for name, c := range map[string]struct {
		does func(p *process)
		want counted.Time
	}{
		"before anything was read there is no time": {func(p *process) { p.ran = time.Hour }, 0},
		"the first leader begins":                   {func(p *process) { p.Continue(0) }, second},
		"it grows by the monotonic clock": {func(p *process) { p.Continue(0); p.ran += time.Minute },
			61 * second},
		"the next continues, and what ran before does not count": {func(p *process) {
			p.ran = time.Hour
			p.Continue(500 * second)
			p.ran += 10 * time.Second
		}, 510 * second},
		"an older count sets nothing back, as after a restore": {func(p *process) {
			p.Continue(500 * second)
			p.ran += time.Minute
			p.Continue(100 * second)
		}, 560 * second},
		"a lost count sets nothing back": {func(p *process) {
			p.Continue(500 * second)
			p.ran += time.Minute
			p.Continue(0)
		}, 560 * second},
		"what another leader counted meanwhile counts": {func(p *process) {
			p.Continue(500 * second)
			p.ran += 10 * time.Second
			p.Continue(900 * second)
			p.ran += 10 * time.Second
		}, 910 * second},
		"the wait for its turn counts": {func(p *process) {
			p.Await(500 * second)
			p.ran += 17 * time.Second
			p.Continue(500 * second)
		}, 517 * second},
		"the wait counts once, beside what the former leader counted": {func(p *process) {
			p.Await(500 * second)
			p.ran += 40 * time.Second
			p.Continue(530 * second)
		}, 540 * second},
		"a long wait counts within a bound": {func(p *process) {
			p.Await(500 * second)
			p.ran += time.Hour
			p.Continue(510 * second)
		}, 540 * second},
		"a wait for a restored count": {func(p *process) {
			p.Await(500 * second)
			p.ran += time.Second
			p.Continue(100 * second)
		}, 130 * second},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess()
			c.does(p)
			if got := p.Now(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestAMomentIsTheSameForEachCall(t *testing.T) {
	p := newProcess()
	p.ran = time.Minute
	recorded := start.AddDate(1, 0, 0)
	if got := p.Moment(5*second, recorded); !got.Equal(recorded) {
		t.Errorf("before a count was read: %s", got)
	}
	p.Continue(100 * second)
	for range 2 {
		if got := p.Moment(70*second, recorded); !got.Equal(start.Add(30 * time.Second)) {
			t.Errorf("got %s", got)
		}
		p.ran += time.Hour
	}
	if got := p.Moment(9_000*second, recorded); !got.Equal(recorded) {
		t.Errorf("one that is ahead: %s", got)
	}
}

// TestAKilledLeaderCountsFiveMinutesWithinSeven lets leaders live for a minute each. A heartbeat stores the count every 10 s.
func TestAKilledLeaderCountsFiveMinutesWithinSeven(t *testing.T) {
	const grace, starts, awaits = 5 * time.Minute, 2 * time.Second, 17 * time.Second
	var stored, released counted.Time
	var passed time.Duration
	for passed < time.Hour {
		p := newProcess()
		for begun := passed; passed < begun+time.Minute; passed += time.Second {
			p.ran = passed - begun
			switch ran := p.ran; {
			case ran == starts:
				p.Await(stored)
			case ran == starts+awaits, ran > starts+awaits && (ran-starts-awaits)%(10*time.Second) == 0:
				p.Continue(stored)
				stored = counted.Parse(p.Now().String())
			}
			if released == 0 && p.Now() != 0 {
				released, passed, begun = p.Now(), 0, begun-passed
			}
			if age, ok := p.Now().Since(released); ok && released != 0 && age >= grace {
				if passed < grace || passed > 7*time.Minute {
					t.Errorf("the grace was over after %s", passed)
				}
				return
			}
		}
	}
	t.Error("the grace was never over")
}
