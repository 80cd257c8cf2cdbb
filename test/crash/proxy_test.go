// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"

	"k8s.io/client-go/rest"
)

// errCut says that the manager was killed while a request was on its way.
var errCut = errors.New("the manager is gone")

// startProxy stands between the manager and the API server. Whoever asks is passed on by the token that came along; the
// proxy adds no right of its own. It returns its address and the certificate to trust.
func startProxy(plane *rest.Config, passes func(kind string, when moment) bool) (*httptest.Server, []byte, error) {
	target, err := url.Parse(plane.Host)
	if err != nil {
		return nil, nil, err
	}
	anonymous := rest.AnonymousClientConfig(plane)
	anonymous.QPS = -1
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // a watch is passed on line by line
		Transport:     &gate{next: transport, passes: passes},
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	server := httptest.NewUnstartedServer(proxy)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	return server, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), nil
}

// gate asks before a write goes out and once the API server has stored it.
type gate struct {
	next   http.RoundTripper
	passes func(kind string, when moment) bool
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if !mutates(r) {
		return g.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	kind := apiKind(r, body)
	if !g.passes(kind, beforehand) {
		return nil, errCut
	}
	response, err := g.next.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		return response, err
	}
	if !g.passes(kind, afterwards) {
		return nil, errors.Join(errCut, response.Body.Close())
	}
	return response, nil
}
