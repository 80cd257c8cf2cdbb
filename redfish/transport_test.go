// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var discardLog = log.New(io.Discard, "", 0)

func TestBodiesThatAreNoObjectAreErrorsAndNeverAState(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"null":                    {`null`, `expected a JSON object, got "null"`},
		"an empty array":          {`[]`, `expected a JSON object, got "[]"`},
		"an empty string":         {`""`, "expected a JSON object"},
		"nothing":                 {``, "an empty body"},
		"an HTML page":            {"<html><body>busy</body></html>", "an HTML or XML page"},
		"truncated JSON":          {`{"Id":"1","PowerState":"Of`, "not usable JSON"},
		"an object without a sys": {`{}`, "describes no system"},
		"an error in a 200":       {`{"error":{"code":"Base.1.0.GeneralError"}}`, "describes no system"},
		"nesting without end":     {`{"Id":` + strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat(`}`, 20001), "not usable JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.on("GET "+systemURI, body(c.body))
			got, err := f.client(t).System(t.Context(), systemURI)
			var response *ResponseError
			if !errors.As(err, &response) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want a ResponseError that says %q", err, c.says)
			}
			if got.Power == PowerOff || got.URI != "" {
				t.Errorf("an error came with the state %+v", got)
			}
		})
	}
}

func TestAHugeBodyIsCutAtTheLimitAndTheErrorNamesIt(t *testing.T) {
	for name, announce := range map[string]bool{"announced by Content-Length": true, "streamed": false} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			var written atomic.Int64
			f.on("GET "+systemURI, func(w http.ResponseWriter, _ *http.Request) {
				if announce {
					w.Header().Set("Content-Length", "268435456")
				}
				chunk := bytes.Repeat([]byte(" "), 1<<20)
				for range 256 {
					n, err := w.Write(chunk)
					written.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
			_, err := f.client(t).System(t.Context(), systemURI)
			if err == nil || !strings.Contains(err.Error(), "larger than the limit of 8 MiB") {
				t.Errorf("error %v, want one that names the limit", err)
			}
			f.server.CloseClientConnections()
			if n := written.Load(); n > 64<<20 {
				t.Errorf("the BMC could send %d MiB", n>>20)
			}
		})
	}
}

func TestASlowBodyEndsWithTheRequestsTimeLimit(t *testing.T) {
	f := newFake(t)
	f.on("GET "+systemURI, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"Id":"1",`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	_, err := f.client(t, PoolOptions{RequestTimeout: 200 * time.Millisecond}).System(t.Context(), systemURI)
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "within 200ms") || MayHaveHappened(err) {
		t.Errorf("error %v, want an UnreachableError that names the limit", err)
	}
}

func TestARefusedConnectionSaysSoAndOpensTheBreaker(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := endpointOf("http://" + listener.Addr().String())
	_ = listener.Close()
	var requests atomic.Int32
	pool := poolOf(t, PoolOptions{BreakerBase: time.Hour, BreakerMax: time.Hour, OnRequest: func(key, method, outcome string, _ time.Duration) {
		requests.Add(1)
		if key != "bmc" || method != "GET" || outcome != OutcomeUnreachable {
			t.Errorf("reported %s %s %s", key, method, outcome)
		}
	}})
	c := pool.Get("bmc", endpoint, login0)
	for range 10 {
		_, err = c.System(t.Context(), systemURI)
		var unreachable *UnreachableError
		if !errors.As(err, &unreachable) || unreachable.Sent || Reason(err) != ReasonConnectionFailed {
			t.Fatalf("error %v, want an UnreachableError of a request that was not sent", err)
		}
	}
	if requests.Load() != 3 {
		t.Errorf("%d connections were tried, want 3 before the breaker opens", requests.Load())
	}
	if !strings.Contains(err.Error(), "let through at") {
		t.Errorf("error %q does not say when it is tried again", err)
	}
	if err := c.Reset(t.Context(), systemURI, self, ActionOn); MayHaveHappened(err) || err == nil {
		t.Errorf("a write at an open breaker ended in %v", err)
	}
}

func TestARedirectElsewhereIsNotFollowedAndLeaksNothing(t *testing.T) {
	var leaks atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaks.Add(1) }))
	t.Cleanup(other.Close)
	for name, what := range map[string]string{"a read": "GET " + systemURI, "a login": "POST " + sessions} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			f := newFake(t)
			f.on(what, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+r.URL.Path, code) })
			_, err := f.client(t).System(t.Context(), systemURI)
			if !statusIs(err, code) || !strings.Contains(err.Error(), "a redirect to http://127.0.0.1") {
				t.Errorf("%s redirected by %d: error %v", name, code, err)
			}
		}
	}
	for _, code := range []int{302, 303, 307} {
		f := newFake(t)
		f.on("POST "+resetURI, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, managerURI, code) })
		if err := f.client(t).Reset(t.Context(), systemURI, self, ActionOn); !statusIs(err, code) || MayHaveHappened(err) != (code != 307) {
			t.Errorf("a write redirected by %d on its own host ended in %v", code, err)
		}
	}
	if leaks.Load() != 0 {
		t.Errorf("the other host got %d requests", leaks.Load())
	}
}

func TestAReadIsRedirectedWithinItsHostAFewTimesOnly(t *testing.T) {
	f := newFake(t)
	f.once("GET "+systemURI, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, systemURI, 301) })
	if _, err := f.client(t).System(t.Context(), systemURI); err != nil {
		t.Error(err)
	}
	f.on("GET "+systemURI, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, systemURI, 301) })
	f.seen()
	if _, err := f.client(t).System(t.Context(), systemURI); !statusIs(err, 301) {
		t.Errorf("a redirect loop ended in %v", err)
	}
	if n := len(f.seen("GET")); n > 6 {
		t.Errorf("a redirect loop cost %d requests", n)
	}
}

func TestLinksToOtherHostsAreNotFollowed(t *testing.T) {
	for _, link := range []string{"http://192.0.2.1/redfish/v1/Systems/1", "//192.0.2.1/x", "https://127.0.0.1/x", "relative", "/a b", ""} {
		f := newFake(t)
		_, err := f.client(t).System(t.Context(), link)
		var response *ResponseError
		if !errors.As(err, &response) {
			t.Errorf("link %q: %v", link, err)
		}
	}
}

func TestCertificatesAreVerifiedUnlessTheEndpointSaysOtherwise(t *testing.T) {
	f := newTLSFake(t)
	trusted, wrong, insecure := f.endpoint(), f.endpoint(), f.endpoint()
	trusted.CABundle = f.pem()
	wrong.CABundle = []byte("no certificate")
	insecure.InsecureSkipVerify = true
	pinned, other, otherInsecure := f.endpoint(), f.endpoint(), f.endpoint()
	sum := sha256.Sum256(f.server.Certificate().Raw)
	pinned.CertificateSHA256 = hex.EncodeToString(sum[:])
	other.CertificateSHA256 = strings.Repeat("0", 64)
	otherInsecure.CertificateSHA256, otherInsecure.InsecureSkipVerify = other.CertificateSHA256, true
	for name, c := range map[string]struct {
		endpoint Endpoint
		says     string
	}{
		"by default an unknown issuer is refused": {f.endpoint(), "certificate is not trusted"},
		"a given CA is trusted":                   {trusted, ""},
		"any certificate where asked for":         {insecure, ""},
		"a bundle without certificates":           {wrong, "holds no PEM certificate"},
		"the pinned certificate is trusted":       {pinned, ""},
		"another than the pinned one is refused":  {other, "SHA-256 of the certificate shown: " + pinned.CertificateSHA256},
		"a pin counts where nothing is verified":  {otherInsecure, "another certificate than the trusted one"},
	} {
		t.Run(name, func(t *testing.T) {
			f.seen()
			_, err := poolOf(t).Get("bmc", c.endpoint, login0).System(t.Context(), systemURI)
			if sent := f.seen("GET", "POST"); c.says != "" && len(sent) != 0 {
				t.Errorf("a server that is not trusted was sent %q", sent)
			}
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
	shared := http.DefaultTransport.(*http.Transport).TLSClientConfig
	if shared != nil && (shared.InsecureSkipVerify || shared.RootCAs != nil) {
		t.Error("the TLS configuration of the whole process was changed")
	}
}

func TestACertificateForAnotherNameIsRefused(t *testing.T) {
	f := newTLSFake(t)
	endpoint := f.endpoint()
	endpoint.CABundle, endpoint.Address = f.pem(), "localhost"
	err := poolOf(t).Probe(t.Context(), endpoint)
	if err == nil || !strings.Contains(err.Error(), "for another name") {
		t.Errorf("error %v", err)
	}
}

func TestABMCGetsTwoRequestsAtATimeAndTheFleetItsBudget(t *testing.T) {
	var inFlight, peak atomic.Int32
	slow := func(f *fakeBMC) {
		f.on("GET "+systemURI, func(w http.ResponseWriter, r *http.Request) {
			now := inFlight.Add(1)
			defer inFlight.Add(-1)
			for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
			}
			time.Sleep(5 * time.Millisecond) // long enough for requests to meet
			f.usual(w, r)
		})
	}
	run := func(clients ...BMC) int32 {
		peak.Store(0)
		var wg sync.WaitGroup
		for _, c := range clients {
			for range 8 {
				wg.Go(func() {
					if _, err := c.System(t.Context(), systemURI); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		return peak.Load()
	}
	a, b := newFake(t), newFake(t)
	slow(a)
	slow(b)
	if got := run(a.client(t)); got > 2 {
		t.Errorf("%d requests at a time for one BMC", got)
	}
	pool := poolOf(t, PoolOptions{MaxInFlight: 1})
	if got := run(pool.Get("a", a.endpoint(), login0), pool.Get("b", b.endpoint(), login0)); got != 1 {
		t.Errorf("%d requests at a time for the fleet, want 1", got)
	}
}

func TestWaitingForASlotEndsWithTheCallersDeadline(t *testing.T) {
	f := newFake(t)
	c := f.warm(t, PoolOptions{PerBMC: 1})
	entered, leave := make(chan struct{}), make(chan struct{})
	f.on("GET "+systemURI, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-leave
		f.usual(w, r)
	})
	done := make(chan error)
	go func() { _, err := c.System(t.Context(), systemURI); done <- err }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.System(ctx, systemURI); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAnIdleConnectionThatTheBMCClosedCostsAReadNothing(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	for range 5 {
		f.server.CloseClientConnections()
		if _, err := c.System(t.Context(), systemURI); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLogsHoldNeitherSecretsNorSessionNames(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f := newFake(t)
	pool := NewPool(PoolOptions{Logger: logger})
	if _, err := pool.Get("bmc", f.endpoint(), login0).System(t.Context(), systemURI); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	logger.Info("credentials", "value", login0)
	for _, secret := range []string{password, "token-", login0.Username} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, out.String())
		}
	}
	if strings.Count(out.String(), "redfish request") != 4 {
		t.Errorf("want one line for each of root, login, system, logout:\n%s", out.String())
	}
}

func TestAProbeAsksWithoutCredentials(t *testing.T) {
	f := newFake(t)
	if err := poolOf(t).Probe(t.Context(), f.endpoint()); err != nil {
		t.Error(err)
	}
	wantLines(t, f.seen(), "GET /redfish/v1/")
	f.set("/redfish/v1/", `{"hello":"world"}`)
	if err := poolOf(t).Probe(t.Context(), f.endpoint()); err == nil || !strings.Contains(err.Error(), "not a Redfish service root") {
		t.Errorf("another web service passed as Redfish: %v", err)
	}
	for _, endpoint := range []Endpoint{{Address: "10.0.0.1", Scheme: "ftp"}, {Scheme: "https"}, {Address: "a/b", Scheme: "https"}, {Address: "x", Scheme: "http", Port: 70000}} {
		if err := poolOf(t).Probe(t.Context(), endpoint); err == nil {
			t.Errorf("endpoint %+v was accepted", endpoint)
		}
	}
}
