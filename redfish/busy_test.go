// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"
	"testing"
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

func TestAReadIsNotWaitedForPastItsTime(t *testing.T) {
	f := newFake(t)
	client := f.warm(t, PoolOptions{BusyPause: time.Minute})
	f.on("GET "+systemURI, status(http.StatusServiceUnavailable))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if _, err := client.System(ctx, systemURI); !statusIs(err, 503) {
		t.Errorf("error %v", err)
	}
	if reads := len(f.seen("GET")); reads != 1 {
		t.Errorf("%d reads, though the wait is longer than anybody waits", reads)
	}
}
