// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ErrNotOff says that a boot override or order was refused because the system does not read Off. A power state that the
// BMC does not name is not Off.
var ErrNotOff = errors.New("the system is not Off, and the write would change what its own reboot starts")

// ErrOff says that a restart was refused because the system reads Off: there is nothing to restart, and switching a
// machine on is asked for as such.
var ErrOff = errors.New("the system is Off, so there is nothing to restart; ask for On instead")

// IdentityError says that the system found is not the one meant. Nothing was written.
type IdentityError struct {
	URI       string
	Want, Got Identity
}

func (e *IdentityError) Error() string {
	if e.Want.UUID == "" && e.Want.SerialNumber == "" {
		return fmt.Sprintf("redfish: %s: nothing was written, because the expected identity holds neither UUID nor serial number", e.URI)
	}
	return fmt.Sprintf("redfish: %s: nothing was written, because the system there is (%s) and not (%s); check whether the BMC's address "+
		"or the hardware behind it changed", e.URI, describe(e.Got), describe(e.Want))
}

// describe leaves out what an identity does not hold.
func describe(id Identity) string {
	switch {
	case id.UUID == "" && id.SerialNumber == "":
		return "neither UUID nor serial"
	case id.SerialNumber == "":
		return fmt.Sprintf("UUID %q", id.UUID)
	case id.UUID == "":
		return fmt.Sprintf("serial %q", id.SerialNumber)
	}
	return fmt.Sprintf("UUID %q, serial %q", id.UUID, id.SerialNumber)
}

// NotAskedError says that the BMC was surely not asked for what the operation is about: a guard kept the request from
// being sent, or a step before it failed.
type NotAskedError struct {
	// What was not asked for.
	What string
	// Err is the cause.
	Err error
}

func (e *NotAskedError) Error() string {
	return fmt.Sprintf("redfish: %s was not asked for: %v", e.What, e.Err)
}

func (e *NotAskedError) Unwrap() error { return e.Err }

// AuthError says that the BMC refuses the credentials, or the rights that they carry. While Until lies ahead, the client
// answers with this error without asking the BMC again, so that no account is locked.
type AuthError struct {
	Address string
	// Status is the HTTP status of the refusal, 401 or 403.
	Status  int
	Message string
	// Until is the end of the cool-down; zero where none was begun.
	Until time.Time
}

func (e *AuthError) Error() string {
	text := fmt.Sprintf("redfish: %s refuses the credentials (status %d)", e.Address, e.Status)
	if e.Message != "" {
		text += ": " + e.Message
	}
	if !e.Until.IsZero() {
		text += "; not tried again before " + e.Until.UTC().Format(time.RFC3339) + " unless they change"
	}
	return text
}

// UnreachableError says that no answer came: no connection, no trust in the certificate, or no time left.
type UnreachableError struct {
	Address string
	Method  string
	Path    string
	// Err is the cause.
	Err error
	// Sent says that a connection stood and the request may have arrived.
	Sent bool
	// RetryAt is when the breaker lets the next attempt through; zero where the breaker has no part in it.
	RetryAt time.Time
	// Crowded says that our own limits kept the request from being sent in time.
	Crowded bool
}

func (e *UnreachableError) Error() string {
	text := fmt.Sprintf("redfish: %s %s at %s: %v", e.Method, e.Path, e.Address, e.Err)
	if !e.RetryAt.IsZero() {
		text += "; the next attempt is let through at " + e.RetryAt.UTC().Format(time.RFC3339)
	}
	return text
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// CertificateError says that a BMC showed a certificate that is not trusted. The handshake was ended, so that no request
// and no password was sent.
type CertificateError struct {
	// Shown is the SHA-256 fingerprint of the certificate; empty where none was shown.
	Shown string
	// Trusted is the fingerprint of the one certificate that is trusted; empty where authorities are.
	Trusted string
	// Err is the cause.
	Err error
}

var errOtherCertificate = errors.New("another certificate than the trusted one was shown; check who answers there")

func (e *CertificateError) Error() string {
	text := fmt.Sprintf("%v (SHA-256 of the certificate shown: %s", e.Err, cmp.Or(e.Shown, "none"))
	if e.Trusted != "" {
		text += ", of the trusted one: " + e.Trusted
	}
	return text + ")"
}

func (e *CertificateError) Unwrap() error { return e.Err }

// ResponseError says that an answer came and was not usable: an error status, or a body that makes no sense.
type ResponseError struct {
	Address string
	Method  string
	Path    string
	// Status is the HTTP status; 0 where no single answer is to blame.
	Status int
	// MessageID is the Redfish message identifier, such as Base.1.8.ActionNotSupported; empty where the BMC gave none.
	MessageID string
	Message   string
	// RetryAfter is how long the BMC asks to be left alone; 0 where it does not say.
	RetryAfter time.Duration
	// body is the answer, clipped: it is searched for the names of properties.
	body string
}

// namedIn lists which of the names a refusal holds; none where err is no answer of a BMC.
func namedIn(err error, names ...string) []string {
	refused, answered := errors.AsType[*ResponseError](err)
	return slices.DeleteFunc(names, func(name string) bool { return !answered || !strings.Contains(refused.body, name) })
}

func (e *ResponseError) Error() string {
	text := fmt.Sprintf("redfish: %s %s at %s", e.Method, e.Path, e.Address)
	if e.Status != 0 {
		text += fmt.Sprintf(": status %d", e.Status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.MessageID != "" {
		text += " (" + e.MessageID + ")"
	}
	return text
}

// UnsupportedError says that the system does not offer what was asked. Nothing was written.
type UnsupportedError struct {
	URI string
	// Wanted is what was asked for, Offered what the BMC offers instead (may be empty).
	Wanted  string
	Offered []string
	Hint    string
}

func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("redfish: %s does not support %s", e.URI, e.Wanted)
	if len(e.Offered) > 0 {
		text += "; it offers " + strings.Join(e.Offered, ", ")
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// OverrideError says that the BMC accepted a one-time boot override and does not show it. The system was not switched on,
// because it would boot from something else.
type OverrideError struct {
	Address string
	URI     string
	// Asked is the target that was asked for; Enabled and Target are what is read back, empty where nothing is said.
	Asked           string
	Enabled, Target string
	// AskedMode is the boot mode that was asked for, Mode the one that is read back.
	AskedMode, Mode BootMode
	// Later says that the BMC took the override as a task, which may not have ended yet.
	Later bool
}

func (e *OverrideError) Error() string {
	text := fmt.Sprintf("redfish: %s at %s was not switched on: the boot override Once %s was accepted", e.URI, e.Address, e.Asked)
	if e.Later {
		text += fmt.Sprintf(" as a task, and %s is read back so far", e.read())
	} else {
		text += fmt.Sprintf(", but %s is read back", e.read())
	}
	return text + "; if it stays so, restart the BMC or update its firmware, and check that the account may change boot settings"
}

func (e *OverrideError) read() string {
	words := strings.TrimSpace(cmp.Or(e.Enabled, "nothing") + " " + e.Target)
	if e.Mode != "" && !strings.EqualFold(string(e.Mode), string(e.AskedMode)) {
		words += fmt.Sprintf(" in mode %s instead of %s", e.Mode, e.AskedMode)
	}
	return words
}

// Reasons that Reason returns; they are the reasons of the BMC's Ready condition.
const (
	ReasonConnected            = "Connected"
	ReasonAuthenticationFailed = "AuthenticationFailed"
	ReasonInternalServerError  = "InternalServerError"
	ReasonConnectionFailed     = "ConnectionFailed"
	ReasonUnknownError         = "UnknownError"
)

// Reason names the kind of err for a condition; nil is Connected.
func Reason(err error) string {
	response, answered := errors.AsType[*ResponseError](err)
	switch {
	case err == nil:
		return ReasonConnected
	case is[*AuthError](err):
		return ReasonAuthenticationFailed
	case is[*UnreachableError](err):
		return ReasonConnectionFailed
	case answered && response.Status >= 500:
		return ReasonInternalServerError
	}
	return ReasonUnknownError
}

// Unanswered reports whether err says that the BMC gave no answer of any kind: no error, no refusal, and no certificate
// either, trusted or not. asked is false where the BMC was not asked at all, because it is left alone after earlier
// failures or our own limits stood in the way; then nothing follows.
func Unanswered(err error) (unanswered, asked bool) {
	unreachable, ok := errors.AsType[*UnreachableError](err)
	if !ok {
		return false, true
	}
	if !unreachable.RetryAt.IsZero() || unreachable.Crowded || errors.Is(err, context.Canceled) {
		return false, false
	}
	return !refusedCertificate(err) && !is[tls.RecordHeaderError](err) && !alerted(err), true
}

// refusedCertificate reports whether err says that a certificate was shown and refused: by an authority, for its name,
// dates or serial number, or because it is not the one that is trusted.
func refusedCertificate(err error) bool {
	return is[*CertificateError](err) || errors.Is(err, errNegativeSerial) || is[*tls.CertificateVerificationError](err) ||
		is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err) || is[x509.CertificateInvalidError](err)
}

// Crowded reports whether err says that the BMC was not asked, because too many requests were under way at the same time. That says
// nothing of the BMC.
func Crowded(err error) bool {
	unreachable, ok := errors.AsType[*UnreachableError](err)
	return ok && unreachable.Crowded
}

// openError says that an operation ended after a write whose outcome is not known, and that is not known since either.
type openError struct {
	// write is what the write ended with, last what the operation did.
	write, last error
}

// firstOpen is the first of two errors of writes whose outcome is not known; nil where both are known.
func firstOpen(earlier, later error) error {
	if earlier == nil && MayHaveHappened(later) {
		return later
	}
	return earlier
}

// afterOpen is the error of an operation that ended with last; write is nil where the outcome of each write is known.
func afterOpen(write, last error) error {
	if write == nil {
		return last
	}
	return &openError{write: write, last: last}
}

func (e *openError) Error() string {
	return fmt.Sprintf("%v; before that, a change was sent that may have been made: %v", e.last, e.write)
}

// Unwrap gives the last error first: it is the one that stopped the operation.
func (e *openError) Unwrap() []error { return []error{e.last, e.write} }

// MayHaveHappened reports whether the write that ended in err may still have been carried out by the BMC, so that the
// caller has to read before it repeats. It is false for nil, for reads, for refusals, and where the write was not sent.
func MayHaveHappened(err error) bool {
	if is[*NotAskedError](err) || is[*OverrideError](err) {
		return false
	}
	if is[*openError](err) {
		return true
	}
	if unreachable, ok := errors.AsType[*UnreachableError](err); ok {
		return unreachable.Sent && writes(unreachable.Method)
	}
	response, answered := errors.AsType[*ResponseError](err)
	if !answered || !writes(response.Method) {
		return false
	}
	switch response.Status {
	case http.StatusNotImplemented, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return false
	}
	return response.Status >= 500 || response.Status >= 300 && response.Status < 400
}

func writes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead
}

// is reports whether err is a T, or wraps one.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// statusIs reports whether err is an answer with one of the given statuses.
func statusIs(err error, statuses ...int) bool {
	response, answered := errors.AsType[*ResponseError](err)
	return answered && slices.Contains(statuses, response.Status)
}
