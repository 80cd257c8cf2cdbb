// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bounds of one call.
const (
	// DefaultAttempts is how often a call is tried.
	DefaultAttempts = 5
	// DefaultTimeout bounds one attempt.
	DefaultTimeout = 15 * time.Second
	// firstDelay and maxDelay bound the wait between attempts.
	firstDelay = 500 * time.Millisecond
	maxDelay   = 10 * time.Second
	// maxAnswer bounds what is read of an answer; that about a wipe names the disks that are proved.
	maxAnswer = 1 << 20
)

// RefusedError is an answer of the registry that asking again does not change.
type RefusedError struct {
	// Status is the HTTP status.
	Status int
	// Message and Remedy are the registry's words.
	Message string
	Remedy  string
}

// Error implements error.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("the registry refused: %s (status %d)", e.Message, e.Status)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// IsRefused tells a refusal from trouble on the way.
func IsRefused(err error) bool {
	_, refused := errors.AsType[*RefusedError](err)
	return refused
}

// heldError is an answer that the registry will change: the agent may not go on for now.
type heldError struct {
	reason string
	after  time.Duration
}

// Error implements error.
func (e *heldError) Error() string { return "held back: " + e.reason }

// Client calls the registry. It is safe for concurrent use as long as its fields are not changed.
//
// Trouble on the way (transport errors, 5xx, and 429, which only asks for patience) is tried again with growing,
// jittered delays; every other refusal is returned at once as a *RefusedError, and so is, by WipeStatus, what is held
// back. Every call may be repeated: the registry keeps the last word of a server.
type Client struct {
	// BaseURL is where the registry is, such as https://registry:10000.
	BaseURL string
	// Token is the bearer token; empty sends none.
	Token string
	// Key is what NewKey made for this boot; empty sends none.
	Key string
	// HTTP does the calls; NewHTTPClient makes one. Nil means NewHTTPClient without a CA bundle.
	HTTP *http.Client
	// AgentVersion is told with each report; empty means not said.
	AgentVersion string
	// Attempts is how often a call is tried; zero means DefaultAttempts.
	Attempts int
	// Timeout bounds one attempt; zero means DefaultTimeout.
	Timeout time.Duration
}

// NewHTTPClient gives a client that trusts the PEM certificates of caBundle (the system's where it is empty),
// never follows a redirect (the token goes to the registry only), and keeps few idle connections.
func NewHTTPClient(caBundle []byte) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(caBundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(caBundle) {
			return nil, errors.New("CA bundle: no PEM certificate in it; give the certificate that signed the registry's")
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  DefaultTimeout,
			IdleConnTimeout:        90 * time.Second,
			MaxIdleConnsPerHost:    16,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// fallback serves clients that were given no HTTP client; it is made once so that connections are shared.
var fallback, _ = NewHTTPClient(nil)

// Register sends what the agent knows about the server's hardware.
func (c *Client) Register(ctx context.Context, uuid string, data Data) error {
	return c.call(ctx, http.MethodPost, "/register", Report{SystemUUID: uuid, AgentVersion: c.AgentVersion, Data: data}, nil)
}

// BootState tells whether the operating system is up.
func (c *Client) BootState(ctx context.Context, uuid string, booted bool) error {
	return c.call(ctx, http.MethodPost, "/bootstate", BootStateReport{SystemUUID: uuid, Booted: booted}, nil)
}

// WipeStatus asks whether the agent may go on erasing. Only a status with Current set, and no error, says yes.
// "No longer" (409) and "not now" (503 with held) are answers, not errors; a credential that is not accepted is a
// *RefusedError.
func (c *Client) WipeStatus(ctx context.Context, uuid string) (WipeStatus, error) {
	return c.mayGoOn(ctx, "/wipe/"+uuid)
}

// MayErase asks whether the agent may erase a disk, as WipeStatus does, and names the disk. RefusedDisk in the answer says that it may
// not, whatever Current says.
func (c *Client) MayErase(ctx context.Context, uuid string, disk DiskIdentity) (WipeStatus, error) {
	query := url.Values{}
	for name, value := range map[string]string{"wwid": disk.WWID, "serial": disk.Serial, "model": disk.Model} {
		if value != "" {
			query.Set(name, value)
		}
	}
	query.Set("size", strconv.FormatInt(disk.SizeBytes, 10))
	return c.mayGoOn(ctx, "/wipe/"+uuid+"?"+query.Encode())
}

func (c *Client) mayGoOn(ctx context.Context, path string) (WipeStatus, error) {
	var status WipeStatus
	err := c.call(ctx, http.MethodGet, path, nil, &status)
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Status == http.StatusConflict {
		return WipeStatus{Reason: refused.Message}, nil
	}
	if held, ok := errors.AsType[*heldError](err); ok {
		return WipeStatus{Held: true, Reason: held.reason, RetryAfter: held.after}, nil
	}
	if err != nil {
		return WipeStatus{}, err
	}
	return status, nil
}

// ReportWipe tells how far the erasing has come.
func (c *Client) ReportWipe(ctx context.Context, uuid string, report WipeReport) error {
	report.SystemUUID = uuid
	return c.call(ctx, http.MethodPost, "/wipe", report, nil)
}

func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return fmt.Errorf("registry %s %s: %w", method, path, err)
		}
	}
	attempts := c.Attempts
	if attempts <= 0 {
		attempts = DefaultAttempts
	}
	var last error
	for attempt := range attempts {
		if attempt > 0 && !Wait(ctx, backoff(attempt)) {
			break
		}
		retry, err := c.once(ctx, method, path, content, answer)
		if err == nil {
			return nil
		}
		last = fmt.Errorf("registry %s %s%s: %w", method, c.BaseURL, path, err)
		if !retry || ctx.Err() != nil {
			break
		}
	}
	return last
}

// backoff doubles with each attempt, and is somewhere between half of it and all of it.
func backoff(attempt int) time.Duration {
	delay := maxDelay
	if attempt < 6 {
		delay = min(maxDelay, firstDelay<<(attempt-1))
	}
	return delay/2 + rand.N(delay/2)
}

// Wait is false when ctx ended first.
func Wait(ctx context.Context, delay time.Duration) bool {
	if delay <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// once does one attempt and says whether another may help.
func (c *Client) once(ctx context.Context, method, path string, content []byte, answer any) (retry bool, err error) {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.BaseURL, "/")+path, bytes.NewReader(content))
	if err != nil {
		return false, err
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Key != "" {
		request.Header.Set(KeyHeader, c.Key)
	}
	response, err := cmp.Or(c.HTTP, fallback).Do(request)
	if err != nil {
		return true, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return true, fmt.Errorf("reading the answer: %w", err)
	}
	return judge(response, text, answer)
}

// judge reads an answer, and tells "not now" from a registry that is away.
func judge(response *http.Response, text []byte, answer any) (retry bool, err error) {
	status := response.StatusCode
	if status >= 200 && status < 300 {
		if answer == nil {
			return false, nil
		}
		if err := json.Unmarshal(text, answer); err != nil {
			return true, fmt.Errorf("status %d, but the answer cannot be read: %w", status, err)
		}
		return false, nil
	}
	var words struct {
		Held                  bool
		Error, Remedy, Reason string
	}
	if json.Unmarshal(text, &words) != nil {
		words.Error, words.Held = http.StatusText(status), false
	}
	if words.Held && status == http.StatusServiceUnavailable {
		// What cannot be read is 0: no time is named.
		seconds, _ := strconv.ParseInt(response.Header.Get("Retry-After"), 10, 32)
		return false, &heldError{reason: cmp.Or(words.Reason, words.Error), after: time.Duration(seconds) * time.Second}
	}
	message := cmp.Or(words.Error, words.Reason)
	if status >= 500 || status == http.StatusTooManyRequests {
		return true, fmt.Errorf("status %d: %.256s", status, message)
	}
	return false, &RefusedError{Status: status, Message: message, Remedy: words.Remedy}
}
