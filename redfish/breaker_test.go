// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheBreakerBacksOffDoublesAndClosesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		dead := true
		b := &breaker{threshold: 2, base: time.Second, max: 3 * time.Second}
		rt := b.meter(func(*http.Request) (*http.Response, error) {
			calls++
			if dead {
				return nil, errors.New("refused")
			}
			return &http.Response{StatusCode: 500}, nil
		})
		try := func() int {
			before := calls
			_, _ = rt.RoundTrip((&http.Request{}).WithContext(t.Context()))
			return calls - before
		}
		steps := []struct {
			wait time.Duration
			out  int // requests that went out
		}{
			{0, 1}, {0, 1}, {0, 0}, // the second failure opens it
			{999 * time.Millisecond, 0}, {time.Millisecond, 1}, // half open after 1 s, fails
			{time.Second, 0}, {time.Second, 1}, // then 2 s
			{2 * time.Second, 0}, {time.Second, 1}, // then at most 3 s
		}
		for i, step := range steps {
			time.Sleep(step.wait)
			if got := try(); got != step.out {
				t.Fatalf("step %d: %d requests went out, want %d", i, got, step.out)
			}
		}
		dead = false
		time.Sleep(3 * time.Second)
		if first, second := try(), try(); first != 1 || second != 1 {
			t.Error("an answer, even a 500, did not close the breaker")
		}
		dead = true
		if first, second, third := try(), try(), try(); first != 1 || second != 1 || third != 0 {
			t.Error("the count did not start anew")
		}
	})
}

func TestOneRequestAtATimeTestsAHalfOpenBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breaker{threshold: 1, base: time.Second, max: time.Second}
		b.record(true, false, nil)
		time.Sleep(time.Second)
		if b.refusal(true) != nil {
			t.Fatal("no request was let through after the delay")
		}
		if b.refusal(true) == nil || b.refusal(false) == nil {
			t.Error("a second request was let through beside the first")
		}
		b.record(true, true, nil) // its caller went away
		if b.refusal(true) != nil {
			t.Error("a caller that went away blocked the next attempt")
		}
	})
}

func TestACallerThatGoesAwayDoesNotOpenTheBreaker(t *testing.T) {
	b := &breaker{threshold: 1, base: time.Hour, max: time.Hour}
	rt := b.meter(func(r *http.Request) (*http.Response, error) { return nil, r.Context().Err() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = rt.RoundTrip((&http.Request{}).WithContext(ctx))
	if err := b.refusal(false); err != nil {
		t.Error(err)
	}
}
