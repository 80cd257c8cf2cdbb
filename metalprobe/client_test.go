// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// answers is a transport that gives one answer after the other; 0 is a broken connection.
type answers struct {
	statuses []int
	body     string
	header   http.Header
	requests []*http.Request
	bodies   []string
	times    []time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	text, _ := io.ReadAll(r.Body)
	a.requests, a.bodies, a.times = append(a.requests, r), append(a.bodies, string(text)), append(a.times, time.Now())
	status := a.statuses[min(len(a.requests), len(a.statuses))-1]
	if status == 0 {
		return nil, errors.New("connection reset")
	}
	header := http.Header{"Location": {"https://elsewhere/"}}
	if a.header != nil {
		header = a.header
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

func TestClientTriesAgainOnlyWhereItMayHelp(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []int
		calls    int
		refused  bool
		fails    bool
	}{
		"accepted at once":                   {[]int{201}, 1, false, false},
		"accepted after trouble on the way":  {[]int{0, 503, 429, 201}, 4, false, false},
		"given up after five attempts":       {[]int{500}, 5, false, true},
		"a refusal is final":                 {[]int{401}, 1, true, true},
		"an old entry is final":              {[]int{409}, 1, true, true},
		"what is too large is not sent anew": {[]int{413}, 1, true, true},
		"a redirect is not followed":         {[]int{307}, 1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &answers{statuses: c.statuses, body: `{"error":"no","remedy":"boot again"}`}
				client := clientOf(transport)
				err := client.Register(t.Context(), uuid, Data{})
				if len(transport.requests) != c.calls || IsRefused(err) != c.refused || (err != nil) != c.fails {
					t.Errorf("%d calls, error %v", len(transport.requests), err)
				}
				for i := 1; i < len(transport.times); i++ {
					pause, full := transport.times[i].Sub(transport.times[i-1]), 500*time.Millisecond<<(i-1)
					if pause < full/2 || pause > full {
						t.Errorf("pause %d was %s, want between %s and %s", i, pause, full/2, full)
					}
				}
			})
		})
	}
}

func TestClientStopsWaitingWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		transport := &answers{statuses: []int{0}}
		if err := clientOf(transport).Register(ctx, uuid, Data{}); err == nil || len(transport.requests) != 1 {
			t.Errorf("error %v after %d calls", err, len(transport.requests))
		}
	})
}

func TestClientSaysWhatTheContractAsks(t *testing.T) {
	for name, c := range map[string]struct {
		call       func(*Client) error
		want, body string
	}{
		"register":  {func(c *Client) error { return c.Register(t.Context(), uuid, Data{}) }, "POST /register", `{"systemUUID":"` + uuid + `","data":{}}`},
		"bootstate": {func(c *Client) error { return c.BootState(t.Context(), uuid, true) }, "POST /bootstate", `{"systemUUID":"` + uuid + `","booted":true}`},
		"wipe": {func(c *Client) error {
			return c.ReportWipe(t.Context(), uuid, WipeReport{State: policyv1alpha1.WipeVerified})
		},
			"POST /wipe", `{"systemUUID":"` + uuid + `","state":"Verified"}`},
		"wipe status": {func(c *Client) error { _, err := c.WipeStatus(t.Context(), uuid); return err }, "GET /wipe/" + uuid, ``},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &answers{statuses: []int{200}, body: `{}`}
			if err := c.call(clientOf(transport)); err != nil {
				t.Fatal(err)
			}
			r := transport.requests[0]
			if got := r.Method + " " + r.URL.Path; got != c.want || r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("got %s with %q", got, r.Header.Get("Authorization"))
			}
			if transport.bodies[0] != c.body {
				t.Errorf("body %s, want %s", transport.bodies[0], c.body)
			}
		})
	}
}

func TestWipeStatusIsYesOnlyWhenTheRegistrySaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		current bool
		fails   bool
	}{
		"current":                    {200, `{"current":true,"entry":7}`, true, false},
		"no longer":                  {409, `{"current":false,"reason":"claimed"}`, false, false},
		"a 200 that says nothing":    {200, `{}`, false, false},
		"a 200 that is no JSON":      {200, `<html>`, false, true},
		"a credential of yesterday":  {401, `{"error":"no"}`, false, true},
		"a registry that is away":    {503, ``, false, true},
		"a broken connection":        {0, ``, false, true},
		"a 204 says nothing, either": {204, ``, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				status, err := clientOf(&answers{statuses: []int{c.status}, body: c.body}).WipeStatus(t.Context(), uuid)
				if status.Current != c.current || (err != nil) != c.fails {
					t.Errorf("got %+v, %v", status, err)
				}
			})
		})
	}
}

func TestWipeStatusTellsWhatIsHeldBackFromARegistryThatIsAway(t *testing.T) {
	for name, c := range map[string]struct {
		body, after string
		calls       int
		want        WipeStatus
	}{
		"held back":                          {`{"held":true,"reason":"frozen"}`, "30", 1, WipeStatus{Held: true, Reason: "frozen", RetryAfter: 30 * time.Second}},
		"held back, in other words":          {`{"held":true,"error":"frozen"}`, "", 1, WipeStatus{Held: true, Reason: "frozen"}},
		"held back until no time":            {`{"held":true}`, "soon", 1, WipeStatus{Held: true}},
		"a registry that is busy":            {`{"error":"busy"}`, "5", 5, WipeStatus{}},
		"what stands between, and is no yes": {`{"current":true}`, "", 5, WipeStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &answers{statuses: []int{503}, body: c.body, header: http.Header{"Retry-After": {c.after}}}
				status, err := clientOf(transport).WipeStatus(t.Context(), uuid)
				if !reflect.DeepEqual(status, c.want) || (err == nil) != c.want.Held || len(transport.requests) != c.calls {
					t.Errorf("got %+v, %v after %d calls", status, err, len(transport.requests))
				}
			})
		})
	}
}

func TestHTTPClientTrustsTheGivenCertificateOnly(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the broken handshake is wanted
	server.StartTLS()
	defer server.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	trusting, err := NewHTTPClient(bundle)
	if err != nil {
		t.Fatal(err)
	}
	client := &Client{BaseURL: server.URL + "/", HTTP: trusting, Attempts: 1}
	if err := client.Register(t.Context(), uuid, Data{}); err != nil {
		t.Error(err)
	}
	client.HTTP = nil
	if err := client.Register(t.Context(), uuid, Data{}); err == nil {
		t.Error("a certificate that nobody vouches for was trusted")
	}
	if _, err := NewHTTPClient([]byte("no PEM")); err == nil {
		t.Error("a bundle without certificates was accepted")
	}
}

func clientOf(transport http.RoundTripper) *Client {
	client, _ := NewHTTPClient(nil)
	client.Transport = transport
	return &Client{BaseURL: "https://registry", Token: "secret", HTTP: client}
}
