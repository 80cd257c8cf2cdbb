// SPDX-License-Identifier: Apache-2.0

package power

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/metalaw/metalaw/redfish"
)

func TestHowLongAfterAFailureAShutdownIsAskedForAgain(t *testing.T) {
	busy := func(after time.Duration) error {
		return &redfish.ResponseError{Method: "POST", Status: 503, RetryAfter: after}
	}
	for name, c := range map[string]struct {
		grace, graceful time.Duration
		err             error
		want            time.Duration
	}{
		"as seldom as what was accepted":                {time.Minute, 5 * time.Minute, busy(0), time.Minute},
		"half the time that the operating system has":   {time.Minute, time.Minute, busy(0), 30 * time.Second},
		"no sooner than after a while":                  {time.Minute, 20 * time.Second, busy(0), 15 * time.Second},
		"no sooner than the BMC asks":                   {time.Minute, 5 * time.Minute, busy(4 * time.Minute), 4 * time.Minute},
		"where the pause between requests is very long": {time.Hour, 5 * time.Minute, busy(0), 150 * time.Second},
	} {
		if got := shutdownPause(c.grace, c.graceful, c.err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhatTheBMCFailedAtIsNotTakenForWithheld(t *testing.T) {
	withheld := func(err error) error { return &redfish.NotAskedError{What: "the power-on", Err: err} }
	busy := &redfish.ResponseError{Method: "GET", Status: 503, RetryAfter: 2 * time.Minute}
	for name, c := range map[string]struct {
		err   error
		asked bool
		after time.Duration
	}{
		"a server that changed meanwhile":     {withheld(errors.New("the claim changed")), false, 2 * time.Second},
		"an override that no answer confirms": {withheld(fmt.Errorf("read back: %w", busy)), true, 2 * time.Minute},
		"a BMC that refuses the question":     {withheld(fmt.Errorf("read back: %w", &redfish.ResponseError{Method: "GET", Status: 404})), true, 2 * time.Second},
		"a BMC that does not answer":          {withheld(&redfish.UnreachableError{Method: "GET", Err: errors.New("no route")}), true, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := !NotAsked(c.err); got != c.asked {
				t.Errorf("asked %t", got)
			}
			if got := RetryAfter(c.err); got != c.after {
				t.Errorf("again after %s, want %s", got, c.after)
			}
		})
	}
}
