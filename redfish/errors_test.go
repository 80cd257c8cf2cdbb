// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReasonsAndWhetherAWriteMayHaveHappened(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		reason string
		may    bool
	}{
		"no error":                  {nil, ReasonConnected, false},
		"refused credentials":       {&AuthError{Status: 401}, ReasonAuthenticationFailed, false},
		"a read without an answer":  {&UnreachableError{Method: "GET", Sent: true, Err: context.DeadlineExceeded}, ReasonConnectionFailed, false},
		"a write without an answer": {&UnreachableError{Method: "POST", Sent: true, Err: context.DeadlineExceeded}, ReasonConnectionFailed, true},
		"a write that was not sent": {&UnreachableError{Method: "PATCH", Err: context.DeadlineExceeded}, ReasonConnectionFailed, false},
		"a wrapped one":             {fmt.Errorf("more: %w", &UnreachableError{Method: "POST", Sent: true, Err: context.Canceled}), ReasonConnectionFailed, true},
		"a server error on a write": {&ResponseError{Method: "POST", Status: 503}, ReasonInternalServerError, true},
		"not implemented":           {&ResponseError{Method: "POST", Status: 501}, ReasonInternalServerError, false},
		"see other":                 {&ResponseError{Method: "POST", Status: 303}, ReasonUnknownError, true},
		"temporary redirect":        {&ResponseError{Method: "POST", Status: 307}, ReasonUnknownError, false},
		"a refusal of a write":      {&ResponseError{Method: "POST", Status: 409}, ReasonUnknownError, false},
		"a server error on a read":  {&ResponseError{Method: "GET", Status: 500}, ReasonInternalServerError, false},
		"another system":            {&IdentityError{}, ReasonUnknownError, false},
		"a guard said no":           {&NotAskedError{What: "x", Err: errors.New("y")}, ReasonUnknownError, false},
		"not asked after a loss":    {&NotAskedError{Err: &UnreachableError{Method: "PATCH", Sent: true, Err: context.DeadlineExceeded}}, ReasonConnectionFailed, false},
		"not off":                   {fmt.Errorf("x: %w", ErrNotOff), ReasonUnknownError, false},
		"something else":            {errors.New("x"), ReasonUnknownError, false},
		"not offered":               {&UnsupportedError{URI: "/x", Wanted: "y"}, ReasonUnknownError, false},
	} {
		if got := Reason(c.err); got != c.reason {
			t.Errorf("%s: reason %s, want %s", name, got, c.reason)
		}
		if got := MayHaveHappened(c.err); got != c.may {
			t.Errorf("%s: may have happened %v, want %v", name, got, c.may)
		}
	}
}

func TestErrorsNameThePlaceTheCauseAndTheRemedy(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, err := range map[string]error{
		"redfish: 10.0.0.1:443 refuses the credentials (status 401): locked; not tried again before 2026-01-02T03:04:05Z unless they change":                                         &AuthError{Address: "10.0.0.1:443", Status: 401, Message: "locked", Until: at},
		"redfish: GET /redfish/v1/ at 10.0.0.1:443: dial failed; the next attempt is let through at 2026-01-02T03:04:05Z":                                                            &UnreachableError{Address: "10.0.0.1:443", Method: "GET", Path: "/redfish/v1/", Err: errors.New("dial failed"), RetryAt: at},
		"redfish: POST /x at 10.0.0.1:443: status 400: no (Base.1.0.No)":                                                                                                             &ResponseError{Address: "10.0.0.1:443", Method: "POST", Path: "/x", Status: 400, Message: "no", MessageID: "Base.1.0.No"},
		"redfish: the power-on was not asked for: boot override: timeout":                                                                                                            &NotAskedError{What: "the power-on", Err: errors.New("boot override: timeout")},
		"redfish: /x does not support UefiHttp; it offers Pxe, Hdd; ask for Pxe":                                                                                                     &UnsupportedError{URI: "/x", Wanted: "UefiHttp", Offered: []string{"Pxe", "Hdd"}, Hint: "ask for Pxe"},
		"redfish: /x: nothing was written, because the expected identity holds neither UUID nor serial number":                                                                       &IdentityError{URI: "/x"},
		`redfish: /x: nothing was written, because the system there is (UUID "b") and not (UUID "a", serial "s"); check whether the BMC's address or the hardware behind it changed`: &IdentityError{URI: "/x", Want: Identity{UUID: "a", SerialNumber: "s"}, Got: Identity{UUID: "b"}},
	} {
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
}

func TestWhatSaysThatABMCDoesNotAnswer(t *testing.T) {
	silent, crowded := &UnreachableError{Err: syscall.ECONNREFUSED}, &UnreachableError{Crowded: true, Err: context.DeadlineExceeded}
	for name, c := range map[string]struct {
		err               error
		unanswered, asked bool
	}{
		"no error":                       {nil, false, true},
		"nothing listens":                {silent, true, true},
		"a wrapped one":                  {fmt.Errorf("read: %w", silent), true, true},
		"no answer in time":              {&UnreachableError{Err: context.DeadlineExceeded, Sent: true}, true, true},
		"left alone after failures":      {&UnreachableError{Err: errBreakerOpen, RetryAt: time.Unix(1, 0)}, false, false},
		"our own limits":                 {crowded, false, false},
		"we went away":                   {&UnreachableError{Err: context.Canceled}, false, false},
		"a certificate we do not trust":  {&UnreachableError{Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, false, true},
		"another one than is pinned":     {&UnreachableError{Err: &CertificateError{Shown: "a", Trusted: "b", Err: errOtherCertificate}}, false, true},
		"a certificate for another name": {&UnreachableError{Err: x509.HostnameError{Certificate: &x509.Certificate{}}}, false, true},
		"a certificate that has expired": {&UnreachableError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, false, true},
		"no TLS":                         {&UnreachableError{Err: tls.RecordHeaderError{}}, false, true},
		"refused credentials":            {&AuthError{Status: 401}, false, true},
		"an error of its own":            {&ResponseError{Status: 503}, false, true},
	} {
		if unanswered, asked := Unanswered(c.err); unanswered != c.unanswered || asked != c.asked {
			t.Errorf("%s: %t, %t", name, unanswered, asked)
		}
	}
}

func TestAnUntrustedCertificateIsAnAnswer(t *testing.T) {
	f := newTLSFake(t)
	_, err := f.client(t).Manager(t.Context())
	if unanswered, asked := Unanswered(err); unanswered || !asked {
		t.Errorf("%t, %t: %v", unanswered, asked, err)
	}
	pinned := f.endpoint()
	pinned.CABundle, pinned.CertificateSHA256 = nil, strings.Repeat("ab", 32)
	_, err = poolOf(t).Get("pinned", pinned, login0).Manager(t.Context())
	var refused *CertificateError
	if unanswered, asked := Unanswered(err); unanswered || !asked || !errors.As(err, &refused) {
		t.Errorf("another certificate than the pinned one: %t, %t: %v", unanswered, asked, err)
	}
	f.server.Close()
	_, err = poolOf(t).Get("other", f.endpoint(), login0).Manager(t.Context())
	if unanswered, asked := Unanswered(err); !unanswered || !asked {
		t.Errorf("%t, %t: %v", unanswered, asked, err)
	}
}

func TestRetryAfterIsBounded(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "99999999": time.Hour, "Mon, 02 Jan 2006 15:04:05 GMT": 0, "Fri, 02 Jan 2990 15:04:05 GMT": time.Hour,
	} {
		if got := retryAfter(header); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}
