// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// errorBodyLimit is enough for any Redfish error message; the rest of a longer error page is not worth reading.
const errorBodyLimit = 64 << 10

// wholeBody reads the body before it returns, so that limits on time, size and requests in flight cover it. Of an error
// page and of the answer to a write only the beginning is kept. Of a successful read, a body that is longer than the limit
// is an error, and so is one that is no JSON object, such as the page of a web server that runs while Redfish does not.
func wholeBody(most int64, next roundTrip) roundTrip {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := next(req)
		if err != nil {
			return nil, err
		}
		defer func() { _ = resp.Body.Close() }()
		strict, limit := !writes(req.Method) && resp.StatusCode < 300, most
		if !strict {
			limit = min(limit, errorBodyLimit)
		}
		var body []byte
		tooLarge := strict && resp.ContentLength > limit
		if !tooLarge {
			body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
			tooLarge = strict && int64(len(body)) > limit
			body = body[:min(int64(len(body)), limit)]
		}
		switch {
		case tooLarge:
			return nil, &ResponseError{Status: resp.StatusCode, Message: "the answer is larger than the limit of " + size(limit)}
		case err != nil && strict:
			return nil, fmt.Errorf("the answer broke off after %d bytes: %w", len(body), err)
		}
		if strict && req.Method == http.MethodGet && resp.StatusCode >= 200 {
			if body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")); !isObject(body) {
				return nil, &ResponseError{Status: resp.StatusCode,
					Message: "expected a JSON object, got " + looksLike(body, resp.Header)}
			}
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		resp.ContentLength = int64(len(body))
		return resp, nil
	}
}

func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

func looksLike(body []byte, header http.Header) string {
	encoding := header.Get("Content-Encoding")
	if bytes.HasPrefix(body, []byte("\x1f\x8b")) {
		encoding = "gzip"
	}
	body = bytes.TrimSpace(body)
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	switch {
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Sprintf("a body in %s, which was not asked for; switch compression off at the BMC or at the proxy "+
			"before it, or update the BMC's firmware", clip(encoding, 40))
	case len(body) == 0:
		return "an empty body"
	case body[0] == '<':
		return "an HTML or XML page (" + clip(kind, 60) + ")"
	case len(body) <= 16:
		return fmt.Sprintf("%q", body)
	}
	return fmt.Sprintf("%d bytes that begin with %q", len(body), body[:16])
}
