// SPDX-License-Identifier: Apache-2.0

package bootserver

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalaw/metalaw/internal/peers"
)

func TestWhenBytesHaveToBeTaken(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		now   time.Duration
		bytes int64
		want  time.Duration
	}{
		"the first bytes":                          {0, 1024, stallLimit},
		"a reader that was fast may pause":         {time.Second, 100 << 20, time.Second + stallLimit},
		"a reader that is as slow as it may be":    {10 * time.Minute, 540 * leastRate, 10 * time.Minute},
		"a reader that is slower has no time left": {10 * time.Minute, 60 * leastRate, 2 * time.Minute},
		"no answer takes longer than all may":      {writeLimit - time.Second, 1 << 40, writeLimit},
	} {
		if got := writtenBy(began, began.Add(c.now), c.bytes).Sub(began); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// onePipe is a listener with one connection that has no buffer, so that a bubble has its own time.
type onePipe struct {
	once  chan net.Conn
	ended chan struct{}
	close sync.Once
}

func (p *onePipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.once:
		return conn, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *onePipe) Close() error {
	p.close.Do(func() { close(p.ended) })
	return nil
}

func (p *onePipe) Addr() net.Addr { return &net.TCPAddr{} }

func TestASlowReaderIsCutOff(t *testing.T) {
	layer := bytes.Repeat([]byte("layer"), 2<<20)
	for name, c := range map[string]struct {
		// each second so many bytes are read, after the first so many.
		first, each int
		whole       bool
		atMost      time.Duration
	}{
		"that reads nothing":                     {0, 0, false, 2 * stallLimit},
		"that stands still after a good start":   {5 << 20, 0, false, 2 * stallLimit},
		"that reads a few bytes each second":     {0, 100, false, 3 * stallLimit},
		"that reads less than it has to":         {0, leastRate / 2, false, 3 * stallLimit},
		"but not one that reads as a slow BMC":   {0, 8 * leastRate, true, writeLimit},
		"and not one that reads everything fast": {len(layer), 1 << 20, true, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(layer))
				})
				ctx, cancel := context.WithCancel(t.Context())
				listener := &onePipe{once: make(chan net.Conn, 1), ended: make(chan struct{})}
				ended := make(chan error, 1)
				go func() { ended <- serve(ctx, listener, handler, nil, slog.New(slog.DiscardHandler)) }()
				ours, theirs := net.Pipe()
				listener.once <- theirs
				if _, err := io.WriteString(ours, "GET / HTTP/1.1\r\nHost: boot\r\nConnection: close\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				read, err := io.CopyN(io.Discard, ours, int64(c.first))
				for err == nil && time.Since(began) < writeLimit {
					time.Sleep(time.Second)
					var n int64
					if c.each > 0 {
						n, err = io.CopyN(io.Discard, ours, int64(c.each))
					} else if time.Since(began) > c.atMost { // one that reads nothing finds out when it looks
						n, err = io.CopyN(io.Discard, ours, int64(writeStep))
					}
					read += n
				}
				if whole := read > int64(len(layer)); whole != c.whole || time.Since(began) > c.atMost+2*time.Second {
					t.Errorf("%d of %d bytes were read in %s", read, len(layer), time.Since(began))
				}
				_ = ours.Close()
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestOneSourceLeavesConnectionsForTheOthers(t *testing.T) {
	_, options := serving(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, peers.Listen(listener, 8), Machines(options), nil, options.Log) }()
	address := listener.Addr().String()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	var last net.Conn
	for range 8/2 + 1 { // half of all, and one more
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		last = conn
		t.Cleanup(func() { _ = conn.Close() })
	}
	if n, err := last.Read(make([]byte, 1)); err == nil {
		t.Errorf("a connection beyond the share of its source gave %d bytes", n)
	}
	if status, _ := fetch(t, "127.0.0.3", "http://"+address+"/ipxe/"+uuid); status != http.StatusOK {
		t.Errorf("another source got %d", status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAConnectionHasOneRequestAtATime(t *testing.T) {
	pair := httptest.NewUnstartedServer(http.NotFoundHandler())
	pair.EnableHTTP2 = true
	pair.StartTLS()
	defer pair.Close()
	_, options := serving(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	config := TLSConfig(nil)
	config.Certificates = pair.TLS.Certificates
	go func() { ended <- Serve(ctx, listener, Machines(options), config, options.Log) }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+listener.Addr().String()+"/ipxe/"+uuid, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := pair.Client().Do(request) // it speaks HTTP/2 where the server does
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 1 {
		t.Errorf("%d by %s", response.StatusCode, response.Proto)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
