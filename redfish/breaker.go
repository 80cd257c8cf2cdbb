// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

var errBreakerOpen = errors.New("the BMC did not answer several times in a row and is left alone for now")

// breaker counts connection failures in a row. At the threshold it opens: requests fail at once. After a delay that
// doubles with each failure, one request is let through; its success closes the breaker.
type breaker struct {
	threshold int
	base, max time.Duration

	mu       sync.Mutex
	failures int
	delay    time.Duration
	until    time.Time // open until then; zero means closed
	probing  bool      // the one request of the half-open breaker is under way
	// distrusted is why the last failure was one of the certificate; nil where it was not.
	distrusted *CertificateError
}

// refusal returns the error for a request that must not go out now. With reserve it also takes the half-open probe.
func (b *breaker) refusal(reserve bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return nil
	}
	if b.probing || time.Now().Before(b.until) {
		if b.distrusted != nil {
			return &UnreachableError{Err: fmt.Errorf("%w; the last time: %w", errBreakerOpen, b.distrusted), RetryAt: b.until}
		}
		return &UnreachableError{Err: errBreakerOpen, RetryAt: b.until}
	}
	if reserve {
		b.probing = true
	}
	return nil
}

// record counts how a request ended. Err is what it ended with.
func (b *breaker) record(failed, neither bool, err error) {
	var distrusted *CertificateError
	if failed && !neither {
		_ = errors.As(explain(err), &distrusted)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	if !neither {
		b.distrusted = distrusted
	}
	switch {
	case neither:
	case !failed:
		b.failures, b.delay, b.until = 0, 0, time.Time{}
	default:
		b.failures++
		if b.failures < b.threshold {
			return
		}
		b.delay = min(max(2*b.delay, b.base), b.max)
		b.until = time.Now().Add(b.delay)
	}
}

// gate refuses before a request waits for a slot.
func (b *breaker) gate(next roundTrip) roundTrip {
	return func(req *http.Request) (*http.Response, error) {
		if err := b.refusal(false); err != nil {
			return nil, err
		}
		return next(req)
	}
}

// meter refuses again after the wait for a slot, and records how each request ended.
func (b *breaker) meter(next roundTrip) roundTrip {
	return func(req *http.Request) (*http.Response, error) {
		if err := b.refusal(true); err != nil {
			return nil, err
		}
		resp, err := next(req)
		answered := err == nil || is[*ResponseError](err)
		// A caller that goes away says nothing about the BMC.
		b.record(!answered, !answered && errors.Is(req.Context().Err(), context.Canceled), err)
		return resp, err
	}
}
