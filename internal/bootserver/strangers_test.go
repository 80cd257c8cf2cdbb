// SPDX-License-Identifier: Apache-2.0

package bootserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/internal/bootserver/origin"
)

// listening serves a handler as the program does, on a port of this host.
func listening(t *testing.T, handler http.Handler, options Options) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, handler, nil, options.Log) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})
	return listener.Addr().String()
}

// client is a program on a host with an address.
func client(t *testing.T, source string) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func fetch(t *testing.T, source, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", "127.0.0.1") // a stranger may write what it likes
	response, err := client(t, source).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestAnIgnitionIsServedToItsMachineAlone(t *testing.T) {
	var machine origin.Known
	machine.Add("52:54:00:aa:bb:01", "127.0.0.1")
	for name, c := range map[string]struct {
		change  func(*Boot, *Options)
		from    string
		status  int
		refused []Refusal
	}{
		"its machine":                          {nil, "127.0.0.1", 200, nil},
		"a stranger that knows the UUID":       {nil, "127.0.0.9", 404, []Refusal{RefusalAnotherAddress}},
		"a stranger, where the policy allows":  {func(_ *Boot, o *Options) { o.AnyMachine = true }, "127.0.0.9", 200, nil},
		"a machine without known addresses":    {func(b *Boot, _ *Options) { b.Machine = origin.Known{} }, "127.0.0.9", 200, nil},
		"an agent, whose addresses may be new": {func(b *Boot, _ *Options) { b.Tenant = false }, "127.0.0.9", 200, nil},
		"its machine after its first sign":     {func(b *Boot, _ *Options) { b.Closed = true }, "127.0.0.1", 404, []Refusal{RefusalFirstSign}},
		"any machine after its first sign": {func(b *Boot, o *Options) { b.Closed, o.AnyMachine = true, true }, "127.0.0.9", 404,
			[]Refusal{RefusalFirstSign}},
	} {
		t.Run(name, func(t *testing.T) {
			source, options := serving(t)
			source.boot.Tenant, source.boot.Machine = true, machine
			if c.change != nil {
				c.change(&source.boot, &options)
			}
			address := listening(t, Machines(options), options)
			status, body := fetch(t, c.from, "http://"+address+"/ignition/"+uuid)
			if status != c.status || (status == 200) != strings.Contains(body, "3.4.0") || !slices.Equal(source.refused, c.refused) {
				t.Errorf("%d %q, refused %v", status, body, source.refused)
			}
			if unknown := "/ignition/00000000-0000-0000-0000-000000000001"; c.status == 404 {
				if _, of := fetch(t, c.from, "http://"+address+unknown); of != body {
					t.Errorf("a stranger learns that a UUID is good: %q, %q", body, of)
				}
			}
		})
	}
}

func TestASourceThatTriesUUIDsIsLimited(t *testing.T) {
	source, options := serving(t)
	source.boot.Machine.Add("52:54:00:aa:bb:01", "127.0.0.9")
	address := listening(t, Machines(options), options)
	guesser := client(t, "127.0.0.9")
	last := 0
	for i := 0; i < 100*burst && last != http.StatusServiceUnavailable; i++ {
		url := fmt.Sprintf("http://%s/ignition/00000000-0000-0000-0000-%012d", address, i)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := guesser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		last = response.StatusCode
	}
	if last != http.StatusServiceUnavailable {
		t.Errorf("the last of many got %d", last)
	}
	if status, _ := fetch(t, "127.0.0.1", "http://"+address+"/ignition/"+uuid); status != http.StatusOK {
		t.Errorf("another source got %d", status)
	}
	for _, document := range []string{"/ignition/", "/ipxe/"} { // as where a whole network counts as one source
		if status, _ := fetch(t, "127.0.0.9", "http://"+address+document+uuid); status != http.StatusOK {
			t.Errorf("the machine's own address got %d for %s", status, document)
		}
	}
}
