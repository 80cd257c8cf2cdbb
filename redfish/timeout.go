// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// deadline gives each request its own time limit. The layers below read the whole body before they return, so the limit
// covers a body that trickles as well.
func deadline(after time.Duration, next roundTrip) roundTrip {
	return func(req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithTimeout(req.Context(), after)
		defer cancel()
		resp, err := next(req.WithContext(ctx))
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && req.Context().Err() == nil {
			return nil, &UnreachableError{Err: fmt.Errorf("no complete answer within %s: %w", after, context.DeadlineExceeded)}
		}
		return resp, err
	}
}
