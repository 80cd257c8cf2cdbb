// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// errorBodyLimit is enough for any Redfish error message; the rest of a longer error page is not worth reading.
const errorBodyLimit = 64 << 10

// wholeBody reads the body before it returns, so that limits on time, size and requests in flight cover it. A longer
// body than the limit is an error; of an error page and of the answer to a write only the beginning is kept, because
// there the status has already said what happened.
type wholeBody struct {
	limit int64
	next  http.RoundTripper
}

func (w *wholeBody) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	strict := !writes(req.Method) && resp.StatusCode < 300
	limit := w.limit
	if !strict {
		limit = min(limit, errorBodyLimit)
	}
	if strict && resp.ContentLength > limit {
		return nil, w.tooLarge(resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if int64(len(body)) > limit {
		if strict {
			return nil, w.tooLarge(resp.StatusCode)
		}
		body = body[:limit]
	}
	if err != nil && strict {
		return nil, fmt.Errorf("the answer broke off after %d bytes: %w", len(body), err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	return resp, nil
}

func (w *wholeBody) tooLarge(status int) error {
	return &ResponseError{Status: status, Message: fmt.Sprintf("the answer is larger than the limit of %s", size(w.limit))}
}

func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
