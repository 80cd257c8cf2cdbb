// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"net/http"
	"strings"
)

// maxRedirects is one more than any BMC was seen to need (a missing or surplus slash).
const maxRedirects = 3

// refuseRedirects is the http.Client policy: a read may be redirected within the same scheme and host, nothing else is.
// Go would otherwise carry X-Auth-Token to any host and repeat a login body on a 307. The 3xx answer is handed to the
// caller, which reports it.
func refuseRedirects(req *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || req.Method != http.MethodGet || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	if req.URL.Scheme != first.URL.Scheme || !strings.EqualFold(hostPort(req.URL.Scheme, req.URL.Host), hostPort(first.URL.Scheme, first.URL.Host)) {
		return http.ErrUseLastResponse
	}
	return nil
}

// hostPort adds the scheme's default port where host has none.
func hostPort(scheme, host string) string {
	if strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']') {
		return host
	}
	if scheme == "http" {
		return host + ":80"
	}
	return host + ":443"
}
