// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// objectOnly refuses a successful answer to a read whose body is not a JSON object: null, [], "", nothing at all, or the
// HTML page of a web server that runs while the Redfish service does not. It stands above wholeBody.
type objectOnly struct {
	next http.RoundTripper
}

func (o *objectOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(req)
	if err != nil || req.Method != http.MethodGet || resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if !isObject(body) {
		return nil, &ResponseError{Status: resp.StatusCode,
			Message: "expected a JSON object, got " + looksLike(body, resp.Header.Get("Content-Type"))}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func looksLike(body []byte, contentType string) string {
	body = bytes.TrimSpace(body)
	kind, _, _ := strings.Cut(contentType, ";")
	switch {
	case len(body) == 0:
		return "an empty body"
	case body[0] == '<':
		return "an HTML or XML page (" + clip(kind, 60) + ")"
	case len(body) <= 16:
		return fmt.Sprintf("%q", body)
	}
	return fmt.Sprintf("%d bytes that begin with %q", len(body), body[:16])
}
