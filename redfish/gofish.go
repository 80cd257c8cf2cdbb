// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/stmcginnis/gofish/schemas"
)

// gofishClient lets gofish's schema functions send through one operation of ours: with our transport and limits, never
// with a client that gofish made. It sends with cred where one is given, else with the operation's own login.
type gofishClient struct {
	op   *operation
	cred *credential
	last *answer // of the latest request
}

var _ schemas.Client = (*gofishClient)(nil)

var errNoMultipart = errors.New("redfish: a multipart push through gofish holds the whole image in memory " +
	"and sends an empty body when it has to repeat")

func (g *gofishClient) do(method, uri string, payload any, headers map[string]string) (*http.Response, error) {
	header := http.Header{}
	for name, value := range headers {
		header.Set(name, value)
	}
	var err error
	if g.cred == nil {
		g.last, err = g.op.send(method, uri, payload, header)
	} else {
		g.last, err = g.op.sendAs(*g.cred, method, uri, payload, header)
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: g.last.status, Header: g.last.header, Body: io.NopCloser(bytes.NewReader(g.last.body))}, nil
}

// GetSettings switches nothing on: gofish's own $expand repeats a request on any error.
func (g *gofishClient) GetSettings() schemas.ClientSettings { return schemas.ClientSettings{} }

func (g *gofishClient) Get(uri string) (*http.Response, error) {
	return g.do(http.MethodGet, uri, nil, nil)
}

func (g *gofishClient) GetWithHeaders(uri string, headers map[string]string) (*http.Response, error) {
	return g.do(http.MethodGet, uri, nil, headers)
}

func (g *gofishClient) Post(uri string, payload any) (*http.Response, error) {
	return g.do(http.MethodPost, uri, payload, nil)
}

func (g *gofishClient) PostWithHeaders(uri string, payload any, headers map[string]string) (*http.Response, error) {
	return g.do(http.MethodPost, uri, payload, headers)
}

func (g *gofishClient) PostMultipart(string, map[string]io.Reader) (*http.Response, error) {
	return nil, errNoMultipart
}

func (g *gofishClient) PostMultipartWithHeaders(string, map[string]io.Reader, map[string]string) (*http.Response, error) {
	return nil, errNoMultipart
}

func (g *gofishClient) Patch(uri string, payload any) (*http.Response, error) {
	return g.do(http.MethodPatch, uri, payload, nil)
}

func (g *gofishClient) PatchWithHeaders(uri string, payload any, headers map[string]string) (*http.Response, error) {
	return g.do(http.MethodPatch, uri, payload, headers)
}

func (g *gofishClient) Put(uri string, payload any) (*http.Response, error) {
	return g.do(http.MethodPut, uri, payload, nil)
}

func (g *gofishClient) PutWithHeaders(uri string, payload any, headers map[string]string) (*http.Response, error) {
	return g.do(http.MethodPut, uri, payload, headers)
}

func (g *gofishClient) Delete(uri string) (*http.Response, error) {
	return g.do(http.MethodDelete, uri, nil, nil)
}

func (g *gofishClient) DeleteWithHeaders(uri string, headers map[string]string) (*http.Response, error) {
	return g.do(http.MethodDelete, uri, nil, headers)
}
