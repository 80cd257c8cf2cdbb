// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAReadThatABusyBMCRefusesIsMadeAgain(t *testing.T) {
	busy := func(code int, retryAfter string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if retryAfter != "" {
				w.Header().Set("Retry-After", retryAfter)
			}
			w.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		times  int
		reads  int
		fails  bool
	}{
		"and answered":                               {busy(503, ""), 1, 2, false},
		"twice":                                      {busy(503, ""), 2, 3, false},
		"and no more than twice":                     {busy(503, ""), 3, 3, true},
		"also behind a proxy":                        {busy(502, ""), 1, 2, false},
		"also where the proxy gave up":               {busy(504, ""), 1, 2, false},
		"also when there were too many":              {busy(429, ""), 1, 2, false},
		"not when it asks to be left alone for long": {busy(503, "30"), 1, 1, true},
		"not when it failed for another reason":      {busy(500, ""), 1, 1, true},
		"not when there is no such thing":            {busy(404, ""), 1, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			client := f.warm(t)
			left := c.times
			f.on("GET "+systemURI, func(w http.ResponseWriter, r *http.Request) {
				if left--; left < 0 {
					f.usual(w, r)
					return
				}
				c.answer(w, r)
			})
			_, err := client.System(t.Context(), systemURI)
			if reads := len(f.seen("GET")); reads != c.reads || (err != nil) != c.fails {
				t.Errorf("%d reads, error %v", reads, err)
			}
		})
	}
}

func TestAChangeThatABusyBMCRefusesIsMadeAgainUnlessItShows(t *testing.T) {
	for name, c := range map[string]struct {
		made   bool
		writes int
	}{
		"refused and not made": {false, 2},
		"refused and yet made": {true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			client := f.warm(t)
			f.set(systemURI, systemJSON("Off"))
			f.once("PATCH "+systemURI, func(w http.ResponseWriter, _ *http.Request) {
				if c.made {
					f.set(systemURI, booting("Off", `"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"`))
				}
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			_ = client.PowerOnOnce(t.Context(), systemURI, self, "Pxe")
			if writes := f.seen("PATCH"); len(writes) != c.writes {
				t.Errorf("writes %q", writes)
			}
		})
	}
}

func TestAnActionThatABusyBMCRefusesIsNotMadeAgain(t *testing.T) {
	f := newFake(t)
	client := f.warm(t)
	f.on("POST "+resetURI, status(http.StatusServiceUnavailable))
	if err := client.Reset(t.Context(), systemURI, self, ActionOn); !statusIs(err, 503) || !MayHaveHappened(err) {
		t.Errorf("error %v", err)
	}
	if posts := len(f.seen("POST")); posts != 1 {
		t.Errorf("%d writes", posts)
	}
}

func TestAChangeThatIsOpenIsToldWhateverStopsTheRepeat(t *testing.T) {
	fails := func(code int) func(*fakeBMC) {
		return func(f *fakeBMC) { f.on("GET "+systemURI, status(code)) }
	}
	shows := func(doc string) func(*fakeBMC) {
		return func(f *fakeBMC) { f.set(systemURI, doc) }
	}
	var identity *IdentityError
	for name, c := range map[string]struct {
		write int
		then  func(*fakeBMC)
		stops func(error) bool
		open  bool
	}{
		"the read fails":          {503, fails(500), func(err error) bool { return statusIs(err, 500) }, true},
		"the read is refused":     {503, fails(404), func(err error) bool { return statusIs(err, 404) }, true},
		"no answer comes":         {503, func(f *fakeBMC) { f.on("GET "+systemURI, hangUp) }, func(err error) bool { return Reason(err) == ReasonConnectionFailed }, true},
		"another system answers":  {502, shows(strings.ReplaceAll(systemJSON("Off"), systemUUID, otherUUID)), func(err error) bool { return errors.As(err, &identity) }, true},
		"the system is not Off":   {504, shows(systemJSON("On")), func(err error) bool { return errors.Is(err, ErrNotOff) }, true},
		"the write was not taken": {429, fails(500), func(err error) bool { return statusIs(err, 500) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			client := f.warm(t)
			f.on("PATCH "+systemURI, func(w http.ResponseWriter, _ *http.Request) {
				c.then(f)
				w.WriteHeader(c.write)
			})
			err := client.SetBootOrder(t.Context(), systemURI, self, []string{"Boot2", "Boot1"})
			if !c.stops(err) || MayHaveHappened(err) != c.open {
				t.Errorf("error %v, may have happened %t", err, MayHaveHappened(err))
			}
			if c.open && !strings.Contains(err.Error(), fmt.Sprintf("may have been made: redfish: PATCH %s at %s: status %d", systemURI, f.server.Listener.Addr(), c.write)) {
				t.Errorf("error %v does not name the write", err)
			}
		})
	}
}

// hangUp ends the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestABusyBMCIsWaitedForNoLongerThanThereIsTime(t *testing.T) {
	for name, c := range map[string]struct {
		pause, left time.Duration
		repeats     int
		waits       bool
		took        time.Duration
	}{
		"there is time":                       {time.Second, time.Minute, 0, true, time.Second},
		"the second wait is longer":           {time.Second, time.Minute, 1, true, 2 * time.Second},
		"the call ends before":                {time.Second, 500 * time.Millisecond, 0, false, 0},
		"the call ends before the second":     {time.Second, 1500 * time.Millisecond, 1, false, 0},
		"the wait is longer than anyone's is": {time.Minute, time.Hour, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.left)
				defer cancel()
				o := &operation{c: &client{options: PoolOptions{BusyPause: c.pause}}, ctx: ctx, left: 1}
				began := time.Now()
				waits := o.waitedOut(&ResponseError{Method: http.MethodGet, Status: http.StatusServiceUnavailable}, c.repeats)
				if took := time.Since(began); waits != c.waits || took != c.took {
					t.Errorf("to be repeated: %t, after %s", waits, took)
				}
			})
		})
	}
}
