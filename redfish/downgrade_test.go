// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// peeked is a connection of which the first byte was looked at.
type peeked struct {
	net.Conn
	from *bufio.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.from.Read(b) }

// sorted hands on the connections that begin with TLS; plain takes the others.
type sorted struct {
	net.Listener
	tls   chan net.Conn
	plain *atomic.Int32
	ended chan struct{}
	end   func()
}

func (s *sorted) sort() {
	for {
		c, err := s.Listener.Accept()
		if err != nil {
			s.end()
			return
		}
		go func() {
			p := peeked{c, bufio.NewReader(c)}
			switch first, err := p.from.Peek(1); {
			case err != nil:
				_ = c.Close()
			case first[0] == 0x16: // a handshake
				select {
				case s.tls <- p:
				case <-s.ended:
					_ = c.Close()
				}
			default:
				s.plain.Add(1)
				_ = c.Close()
			}
		}()
	}
}

func (s *sorted) Accept() (net.Conn, error) {
	select {
	case c := <-s.tls:
		return c, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

// A BMC that answers TLS and plain text at one port leads from the one to the other. What follows would carry the session's token
// past every wire.
func TestARedirectFromHTTPSToHTTPAtTheSameHostAndPortIsNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			s := &sorted{Listener: listener, tls: make(chan net.Conn), plain: &atomic.Int32{}, ended: ended, end: sync.OnceFunc(func() { close(ended) })}
			go s.sort()
			f := bareFake()
			f.server = httptest.NewUnstartedServer(f)
			_ = f.server.Listener.Close()
			f.server.Listener, f.server.Config.ErrorLog = s, discardLog
			f.server.StartTLS()
			t.Cleanup(f.server.Close)
			f.on("GET "+systemURI, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://"+listener.Addr().String()+r.URL.Path, code)
			})
			endpoint := f.endpoint()
			endpoint.CABundle = f.pem()
			_, err = poolOf(t, PoolOptions{}).Get("bmc", endpoint, login0).System(t.Context(), systemURI)
			var answer *ResponseError
			if !errors.As(err, &answer) || answer.Status != code || !strings.Contains(err.Error(), "leads away from TLS") {
				t.Errorf("error %v, want the answer %d that says so", err, code)
			}
			if n := s.plain.Load(); n != 0 {
				t.Errorf("%d connections came in plain text", n)
			}
		})
	}
}
