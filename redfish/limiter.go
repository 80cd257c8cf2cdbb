// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"fmt"
	"net/http"
)

// limited lets a fixed number of requests through at a time; the others wait in it until their context ends. One stands
// before each BMC (many BMCs stall or drop connections beyond two), one before the whole fleet. The error says of what.
func limited(slots chan struct{}, of string, next roundTrip) roundTrip {
	return func(req *http.Request) (*http.Response, error) {
		select {
		case slots <- struct{}{}:
		case <-req.Context().Done():
			return nil, &UnreachableError{Crowded: true, Err: fmt.Errorf("gave up waiting for one of the %d request slots of %s: %w",
				cap(slots), of, req.Context().Err())}
		}
		defer func() { <-slots }()
		return next(req)
	}
}
