// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// operation is one call of the port: its deadline, and how many requests it may still make.
type operation struct {
	c    *client
	ctx  context.Context
	left int
	// about proves what the writes of this operation are about; nil until that was read.
	about about
}

// answer is a response with its whole body.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (c *client) begin(ctx context.Context) (*operation, context.CancelFunc, error) {
	if c.broken != nil {
		return nil, nil, c.broken
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.OperationTimeout)
	return &operation{c: c, ctx: ctx, left: c.options.RequestLimit}, cancel, nil
}

// send makes one authenticated request. On a 401 it logs in again and repeats once: the BMC refused, so nothing was
// done. A read that a busy BMC refused is repeated too (waitedOut), and a write that was redirected to another spelling
// of its path. Any other status outside 2xx is a *ResponseError (403: *AuthError); nothing else is ever repeated.
func (o *operation) send(method, uri string, payload any, header http.Header) (*answer, error) {
	body, err := encode(payload)
	if err != nil {
		return nil, fmt.Errorf("redfish: %s %s: %w", method, uri, err)
	}
	if writes(method) {
		o.c.wrote()
		defer o.c.wrote() // a list that was asked for meanwhile may show less than the write changed
	}
	sentTo := o.c.spelled(method, uri)
	if sentTo != uri {
		if err := o.about.proven(method, uri, sentTo); err != nil {
			return nil, err
		}
	}
	for logins, repeats, moved := 0, 0, sentTo != uri; ; {
		cred, err := o.c.login.credential(o)
		if err != nil {
			return nil, err
		}
		got, err := o.raw(armed(o.ctx, method), method, sentTo, body, header, cred)
		if err != nil {
			return nil, err
		}
		if got.status == http.StatusUnauthorized {
			if err := o.c.login.rejected(o, cred, logins > 0, got); err != nil {
				return nil, err
			}
			logins++
			continue
		}
		if other := o.c.elsewhere(method, sentTo, got); other != "" && !moved {
			if err := o.about.proven(method, sentTo, other); err != nil {
				return nil, err
			}
			sentTo, moved = other, true
			continue
		}
		o.c.keepSpelling(method, uri, sentTo, got)
		err = o.failure(method, sentTo, got)
		if method != http.MethodGet || !o.waitedOut(err, repeats) {
			return got, err
		}
		repeats++
	}
}

// sendAs makes one request with the given credential and never logs in. It serves sessions and the service root: a
// redirect to another spelling needs no proof there, since it leads to the same service and changes no machine.
func (o *operation) sendAs(cred credential, method, uri string, payload any, header http.Header) (*answer, error) {
	body, err := encode(payload)
	if err != nil {
		return nil, fmt.Errorf("redfish: %s %s: %w", method, uri, err)
	}
	sentTo := o.c.spelled(method, uri)
	got, err := o.raw(o.ctx, method, sentTo, body, header, cred)
	if err != nil {
		return nil, err
	}
	if other := o.c.elsewhere(method, sentTo, got); other != "" && sentTo == uri {
		if got, err = o.raw(o.ctx, method, other, body, header, cred); err != nil {
			return nil, err
		}
		sentTo = other
	}
	o.c.keepSpelling(method, uri, sentTo, got)
	return got, o.failure(method, sentTo, got)
}

func encode(payload any) ([]byte, error) {
	if payload == nil {
		return nil, nil
	}
	return json.Marshal(payload)
}

// get reads one resource into out, whose fields are tolerant types.
func (o *operation) get(uri string, out any) (*answer, error) {
	got, err := o.send(http.MethodGet, uri, nil, nil)
	if err != nil {
		return nil, err
	}
	return got, o.decode(uri, got, out)
}

func (o *operation) decode(uri string, got *answer, out any) error {
	if err := json.Unmarshal(got.body, out); err != nil {
		return o.bad(http.MethodGet, uri, got.status, "the body is not usable JSON: "+err.Error())
	}
	return nil
}

// raw makes one request as it stands. The error is an *UnreachableError, a *ResponseError or a *NotAskedError; a status
// is no error.
func (o *operation) raw(ctx context.Context, method, uri string, body []byte, header http.Header, cred credential) (*answer, error) {
	if o.left <= 0 {
		return nil, o.bad(method, uri, 0, fmt.Sprintf("this would be more than the %d requests that one operation may make; "+
			"the BMC's links may form a loop", o.c.options.RequestLimit))
	}
	o.left--
	target, err := o.c.resolve(uri)
	if err != nil {
		return nil, o.bad(method, uri, 0, err.Error())
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, o.bad(method, uri, 0, err.Error())
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("OData-Version", "4.0")
	req.Header.Set("User-Agent", "metalaw")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	cred.apply(req, o.c.credentials)
	resp, err := o.c.http.Do(req)
	if err != nil {
		return nil, o.classify(method, uri, err, sent.Load())
	}
	defer func() { _ = resp.Body.Close() }()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, o.classify(method, uri, err, true)
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: all}, nil
}

// resolve turns a link of the BMC into a URL on this very BMC; a link to anywhere else is an error.
func (c *client) resolve(uri string) (*url.URL, error) {
	ref, err := url.Parse(uri)
	if err != nil || uri == "" || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, fmt.Errorf("%q is not a usable link", clip(uri, 200))
	}
	if ref.Scheme != "" || ref.Host != "" {
		if ref.Scheme != c.base.Scheme || !strings.EqualFold(hostPort(ref.Scheme, ref.Host), c.base.Host) || ref.User != nil {
			return nil, fmt.Errorf("the link leads to %q and not to this BMC; it is not followed", clip(ref.Host, 200))
		}
	}
	if !strings.HasPrefix(ref.Path, "/") {
		return nil, fmt.Errorf("%q is not an absolute path", clip(uri, 200))
	}
	target := *c.base
	target.Path, target.RawPath, target.RawQuery = ref.Path, ref.RawPath, ref.RawQuery
	return &target, nil
}

// classify turns what http.Client returned into our errors.
func (o *operation) classify(method, uri string, err error, sent bool) error {
	if response, ok := errors.AsType[*ResponseError](err); ok {
		response.Address, response.Method, response.Path = o.c.base.Host, method, redactPath(uri)
		return response
	}
	if notAsked, ok := errors.AsType[*NotAskedError](err); ok {
		return notAsked
	}
	unreachable, ok := errors.AsType[*UnreachableError](err)
	if !ok {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // drops the URL, which we name ourselves
		}
		unreachable = &UnreachableError{Err: explain(err)}
	}
	unreachable.Address, unreachable.Method, unreachable.Path, unreachable.Sent = o.c.base.Host, method, redactPath(uri), sent
	return unreachable
}

func (o *operation) bad(method, uri string, status int, message string) *ResponseError {
	return &ResponseError{Address: o.c.base.Host, Method: method, Path: redactPath(clip(uri, 200)), Status: status, Message: clip(message, 500)}
}

// failure turns a status outside 2xx into an error.
func (o *operation) failure(method, uri string, got *answer) error {
	if got.status >= 200 && got.status < 300 {
		return nil
	}
	id, message := errorMessage(got.body)
	if got.status == http.StatusForbidden {
		return &AuthError{Address: o.c.base.Host, Status: got.status,
			Message: clip(method+" "+redactPath(uri)+": "+cmp.Or(message, "not allowed"), 500)}
	}
	if asked, err := o.c.resolve(uri); err == nil && got.status >= 300 && got.status < 400 {
		message = redirectWords(asked, got)
	}
	failed := o.bad(method, uri, got.status, message)
	failed.MessageID = id
	failed.body = clip(string(got.body), 8192)
	failed.RetryAfter = retryAfter(got.header.Get("Retry-After"))
	return failed
}

func retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimSpace(header)); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(time.Until(at), 0), time.Hour)
	}
	return 0
}

// errorMessage reads a Redfish error body; a body of another kind gives nothing, since it may be a whole page.
func errorMessage(body []byte) (id, message string) {
	type info struct {
		MessageID text `json:"MessageId"`
		Message   text
	}
	var doc struct {
		Error object[struct {
			Code    text       `json:"code"`
			Message text       `json:"message"`
			Infos   list[info] `json:"@Message.ExtendedInfo"`
		}] `json:"error"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return "", ""
	}
	id, message = string(doc.Error.Value.Code), string(doc.Error.Value.Message)
	for _, i := range doc.Error.Value.Infos.Values {
		if i.MessageID != "" || i.Message != "" {
			id, message = string(i.MessageID), cmp.Or(string(i.Message), message)
			break
		}
	}
	return clip(id, 120), clip(message, 300)
}
