// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalaw/metalaw/redfish"
)

// lamp is a subject that can be read and switched; reading takes a second.
type lamp struct {
	mu     sync.Mutex
	reads  int
	power  string
	err    error
	wakes  int
	begins []time.Time
}

type noClients struct{}

func (noClients) Get(string, redfish.Endpoint, redfish.Credentials) redfish.BMC { return nil }

func (l *lamp) cache() *Cache[string] {
	return NewCache(Options[string]{
		Clients: noClients{},
		Read: func(context.Context, redfish.BMC, Target) (string, error) {
			l.mu.Lock()
			l.reads++
			l.begins = append(l.begins, time.Now())
			l.mu.Unlock()
			time.Sleep(time.Second)
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.power, l.err
		},
		Same: func(a, b string) bool { return a == b },
		Wake: func(string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.wakes++
		},
	})
}

// becomes changes what the next reads return.
func (l *lamp) becomes(power string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.power, l.err = power, err
}

func TestRefreshAnswersAtOnceAndWakesWhenTheReadHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{power: "Off"}
		d := l.cache()
		defer d.Close()
		began := time.Now()
		if r, fresh := d.Refresh("a", Target{}, time.Minute); fresh || r.Tried {
			t.Fatalf("before any read the answer is %+v, fresh %t", r, fresh)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("Refresh kept its caller for %s", took)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r, fresh := d.Refresh("a", Target{}, time.Minute)
		if !fresh || r.Value != "Off" || l.wakes != 1 || l.reads != 1 {
			t.Errorf("got %+v, fresh %t, %d wakes, %d reads", r, fresh, l.wakes, l.reads)
		}
	})
}

func TestManyCallersShareOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{power: "Off"}
		d := l.cache()
		defer d.Close()
		for range 50 {
			d.Refresh("a", Target{}, 0)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if l.reads != 1 {
			t.Errorf("%d reads", l.reads)
		}
	})
}

func TestReadsThatFailAreRepeatedAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{err: errors.New("connection refused")}
		d := l.cache()
		defer d.Close()
		for range 200 { // a caller that asks twice a second for 100 s
			d.Refresh("a", Target{}, 0)
			time.Sleep(500 * time.Millisecond)
		}
		synctest.Wait()
		if l.reads < 5 || l.reads > 8 {
			t.Errorf("%d reads in 100 s, want 5 to 8", l.reads)
		}
		if r := d.Reading("a"); r.Reachable() || r.FailingSince.IsZero() {
			t.Errorf("got %+v", r)
		}
	})
}

func TestAFailedReadKeepsTheLastValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{power: "On"}
		d := l.cache()
		defer d.Close()
		d.Refresh("a", Target{}, 0)
		time.Sleep(2 * time.Second)
		l.becomes("On", errors.New("timeout"))
		d.Refresh("a", Target{}, 0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r := d.Reading("a"); r.Value != "On" || r.Reachable() {
			t.Errorf("got %+v", r)
		}
	})
}

func TestRetryReadsAtOnceAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{err: errors.New("no route")}
		d := l.cache()
		defer d.Close()
		for range 60 {
			d.Refresh("a", Target{}, 0)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		before := l.reads
		l.becomes("On", nil)
		d.Retry("a")
		d.Refresh("a", Target{}, 0)
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if l.reads != before+1 || !d.Reading("a").Reachable() {
			t.Errorf("%d reads more, %+v", l.reads-before, d.Reading("a"))
		}
	})
}

func TestAJobIsDoneOnceAndReadAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{power: "Off"}
		d := l.cache()
		defer d.Close()
		switched := 0
		on := func(context.Context, redfish.BMC) error {
			switched++
			l.becomes("On", nil)
			time.Sleep(time.Second)
			return nil
		}
		for range 10 {
			d.Do("a", Target{}, "1/on", on)
			time.Sleep(300 * time.Millisecond)
		}
		synctest.Wait()
		job, known := d.Known("a", "1/on")
		if switched != 1 || !known || job.State != JobSucceeded {
			t.Fatalf("switched %d times, job %+v", switched, job)
		}
		if r := d.Reading("a"); r.Value != "On" || r.At.Before(job.EndedAt) {
			t.Errorf("the reading %+v was not taken after the job ended at %s", r, job.EndedAt)
		}
		d.Repeat("a", "1/on")
		d.Do("a", Target{}, "1/on", on)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if switched != 2 {
			t.Errorf("after Repeat it was switched %d times in all", switched)
		}
	})
}

func TestAJobThatShowsLaterIsReadForOnlyWhereItFailed(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		reads int
	}{
		"accepted": {nil, 0},
		"refused":  {errors.New("no"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &lamp{power: "Off"}
				d := l.cache()
				defer d.Close()
				d.DoLater("a", Target{}, "1/on", func(context.Context, redfish.BMC) error { return c.err })
				time.Sleep(time.Minute)
				synctest.Wait()
				if l.reads != c.reads || l.wakes == 0 {
					t.Errorf("%d reads, want %d; %d wakes", l.reads, c.reads, l.wakes)
				}
			})
		})
	}
}

func TestAValueIsAsOldAsItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := time.Now()
		time.Sleep(4 * time.Second)
		l := &lamp{power: "Off"}
		d := l.cache()
		d.options.TakenAt = func(string) time.Time { return taken }
		defer d.Close()
		d.Refresh("a", Target{}, time.Minute)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r := d.Reading("a"); !r.Begun.Equal(taken) || !r.At.Equal(taken) {
			t.Errorf("begun %s, at %s, want both to be %s", r.Begun, r.At, taken)
		}
	})
}

func TestAnOlderAnswerDoesNotTakeThePlaceOfANewerOne(t *testing.T) {
	for name, c := range map[string]struct {
		target Target
		failed bool // a read between the two failed
		want   string
	}{
		"of the same target":                   {first(), false, "Off"},
		"of the same target, failed meanwhile": {first(), true, "Off"},
		"of another target":                    {first(func(t *Target) { t.Key = "uid-2" }), false, "On"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listed := time.Now()
				time.Sleep(4 * time.Second)
				l := &lamp{power: "Off"}
				d := l.cache()
				d.options.TakenAt = func(power string) time.Time {
					if power == "On" {
						return listed
					}
					return time.Now()
				}
				defer d.Close()
				d.Refresh("a", first(), 0)
				time.Sleep(2 * time.Second)
				begun := d.Reading("a").Begun
				if c.failed {
					l.becomes("", errors.New("timeout"))
					d.Refresh("a", first(), 0)
					time.Sleep(4 * time.Second)
				}
				l.becomes("On", nil) // as a list showed it, that was asked for before
				d.Refresh("a", c.target, 0)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				r := d.Reading("a")
				if r.Value != c.want || !r.Reachable() || c.want == "Off" && !r.Begun.Equal(begun) {
					t.Errorf("got %+v, want %s; the first was begun at %s", r, c.want, begun)
				}
			})
		})
	}
}

func TestASecondJobWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{}
		d := l.cache()
		defer d.Close()
		var order []string
		slow := func(name string) func(context.Context, redfish.BMC) error {
			return func(context.Context, redfish.BMC) error {
				order = append(order, name)
				time.Sleep(time.Second)
				return nil
			}
		}
		d.Do("a", Target{}, "first", slow("first"))
		if j := d.Do("a", Target{}, "second", slow("second")); j.ID != "first" {
			t.Errorf("the second job was begun beside the first: %+v", j)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		d.Do("a", Target{}, "second", slow("second"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(order) != 2 || order[0] != "first" || order[1] != "second" {
			t.Errorf("done in the order %v", order)
		}
	})
}

func TestCloseEndsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{}
		d := l.cache()
		ended := false
		d.Do("a", Target{}, "long", func(ctx context.Context, _ redfish.BMC) error {
			<-ctx.Done()
			ended = true
			return ctx.Err()
		})
		synctest.Wait()
		d.Close()
		if !ended || l.wakes != 0 {
			t.Errorf("ended %t, %d wakes after Close", ended, l.wakes)
		}
		d.Do("a", Target{}, "late", func(context.Context, redfish.BMC) error { t.Error("a job was begun after Close"); return nil })
		synctest.Wait()
	})
}
