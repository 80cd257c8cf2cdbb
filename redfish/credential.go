// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"log/slog"
	"net/http"
)

const hidden = "(credentials hidden)"

// String keeps the password out of logs and messages.
func (Credentials) String() string { return hidden }

// GoString keeps the password out of %#v.
func (Credentials) GoString() string { return hidden }

// LogValue keeps the password out of structured logs.
func (Credentials) LogValue() slog.Value { return slog.StringValue(hidden) }

// credential is how one request proves who we are: by a session's token, by Basic authentication, or not at all.
type credential struct {
	token string
	basic bool
}

func (c credential) apply(req *http.Request, credentials Credentials) {
	switch {
	case c.token != "":
		req.Header.Set("X-Auth-Token", c.token)
	case c.basic:
		req.SetBasicAuth(credentials.Username, credentials.Password)
	}
}
