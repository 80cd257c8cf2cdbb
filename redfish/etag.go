// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"net/http"
	"strings"
)

// ifMatch returns the header for a conditional write; nil where there is nothing to compare with.
func ifMatch(etag string) http.Header {
	if etag == "" {
		return nil
	}
	return http.Header{"If-Match": {etag}}
}

// strongETag rewrites an entity tag in the one form that If-Match must accept: not weak, without the suffix of a
// compressing front end, quoted once. BMCs hand out all of W/"x", "x-gzip", x and ""x"" and refuse them with 412.
func strongETag(etag string) string {
	opaque := strings.TrimPrefix(strings.TrimSpace(etag), "W/")
	opaque = strings.TrimSuffix(strings.Trim(opaque, `"`), "-gzip")
	if opaque == "" || opaque == "*" {
		return opaque
	}
	return `"` + opaque + `"`
}
