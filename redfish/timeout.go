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
type deadline struct {
	after time.Duration
	next  http.RoundTripper
}

func (d *deadline) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), d.after)
	defer cancel()
	resp, err := d.next.RoundTrip(req.WithContext(ctx))
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && req.Context().Err() == nil {
		return nil, &UnreachableError{Err: fmt.Errorf("no complete answer within %s: %w", d.after, context.DeadlineExceeded)}
	}
	return resp, err
}
