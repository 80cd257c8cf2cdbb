// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"fmt"
	"net/http"
)

// limiter lets a fixed number of requests through at a time; the others wait in it until their context ends. One stands
// before each BMC (many BMCs stall or drop connections beyond two), one before the whole fleet.
type limiter struct {
	slots chan struct{}
	of    string // what the limit protects, for the error
	next  http.RoundTripper
}

func (l *limiter) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case l.slots <- struct{}{}:
	case <-req.Context().Done():
		return nil, &UnreachableError{Crowded: true, Err: fmt.Errorf("gave up waiting for one of the %d request slots of %s: %w",
			cap(l.slots), l.of, req.Context().Err())}
	}
	defer func() { <-l.slots }()
	return l.next.RoundTrip(req)
}
