// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"testing"
	"time"

	"github.com/metalaw/metalaw/redfish"
)

const refused = "redfish: a refuses the credentials (status 401); correct the BMCSecret, which is then tried at once; so that no account is " +
	"locked, the same credentials are tried again only after 2026-01-02 03:05 UTC"

func TestDescribe(t *testing.T) {
	moment := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name string
		err  error
		want string
		news bool
	}{
		{"no error is nothing", nil, "", true},
		{"our own port is left out", &redfish.UnreachableError{Address: "10.0.0.7:443", Method: "GET", Path: "/x",
			Err: errors.New("read tcp 10.0.0.1:41322->10.0.0.7:443: connection reset by peer")},
			"redfish: GET /x at 10.0.0.7:443: read tcp 10.0.0.7:443: connection reset by peer", true},
		{"our own port is left out with IPv6", &redfish.UnreachableError{Address: "[fd00::7]:443", Method: "GET", Path: "/x",
			Err: errors.New("read tcp [fd00::1]:41322->[fd00::7]:443: connection reset by peer")},
			"redfish: GET /x at [fd00::7]:443: read tcp [fd00::7]:443: connection reset by peer", true},
		{"the breaker's time is left out, and is no news", &redfish.UnreachableError{Address: "a", Method: "GET", Path: "/x", Err: errors.New("left alone"), RetryAt: moment},
			"redfish: GET /x at a: left alone", false},
		{"a refusal is told with its remedy", &redfish.AuthError{Address: "a", Status: 401, Until: moment}, refused, true},
		{"a refusal that ends in the same minute says the same", &redfish.AuthError{Address: "a", Status: 401, Until: moment.Add(20 * time.Second)}, refused, true},
		{"a refusal without a cool-down names no time", &redfish.AuthError{Address: "a", Status: 403}, "redfish: a refuses the credentials (status 403)", true},
		{"any other error speaks for itself", errors.New("odd"), "odd", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, news := Describe(c.err)
			if got != c.want || news != c.news {
				t.Errorf("got %q, news %t, want %q, news %t", got, news, c.want, c.news)
			}
		})
	}
}

func TestOnlyABMCObjectCanBeAskedToTryAgain(t *testing.T) {
	rests := &redfish.AuthError{Address: "a", Status: 401, Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for name, c := range map[string]struct {
		err  error
		bmc  string
		want string
	}{
		"credentials of a BMC object": {rests, "b", "; if they were corrected at the BMC, have them tried sooner by annotation metal.ironcore.dev/operation=retry on BMC b"},
		"access that a Server holds":  {rests, "", ""},
		"a right that is missing":     {&redfish.AuthError{Address: "a", Status: 403}, "b", ""},
		"another error":               {errors.New("odd"), "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Retry(c.err, c.bmc); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
