// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

// pipes is a listener without a network, so that time in a bubble passes by itself.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialed:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return address("registry") }

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// caller is the registry's end of a connection.
type caller struct {
	net.Conn
	address address
	hungUp  chan struct{}
	once    sync.Once
}

func (c *caller) RemoteAddr() net.Addr { return c.address }

func (c *caller) Close() error {
	c.once.Do(func() { close(c.hungUp) })
	return c.Conn.Close()
}

// dial connects from an address. hungUp is closed when the registry ends the connection.
func (p *pipes) dial(source string) (conn net.Conn, hungUp <-chan struct{}) {
	theirs, ours := net.Pipe()
	c := &caller{Conn: ours, address: address(source), hungUp: make(chan struct{})}
	p.dialed <- c
	return theirs, c.hungUp
}

// besieged serves a registry in a synctest bubble.
func besieged(t *testing.T, change func(*Options)) (*fleet, *pipes) {
	t.Helper()
	p := &pipes{dialed: make(chan net.Conn), closed: make(chan struct{})}
	f := newFleet(t, func(_ *metalv1alpha1.Server, o *Options) {
		o.Listener, o.Now = p, time.Now
		if change != nil {
			change(o)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.registry.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the registry ended with %v", err)
		}
	})
	return f, p
}

func post(length int) string {
	return fmt.Sprintf("POST /register HTTP/1.1\r\nHost: registry\r\nAuthorization: Bearer mine\r\nContent-Length: %d\r\n\r\n", length)
}

func TestASlowConnectionIsCutOff(t *testing.T) {
	whole := report(uuid, least)
	for name, c := range map[string]struct {
		// at once is sent, and then one byte of drip each second.
		atOnce, drip string
		// deaf reads no answer.
		deaf bool
		tls  bool
		want time.Duration
	}{
		"that says nothing":                          {want: headerTime},
		"that says nothing, where TLS is spoken":     {tls: true, want: headerTime},
		"whose handshake takes its time":             {tls: true, drip: "\x16\x03\x01\x02\x00" + strings.Repeat("x", 600), want: headerTime},
		"whose first line takes its time":            {drip: "POST /register HTTP/1.1", want: headerTime},
		"whose headers take their time":              {atOnce: "POST /register HTTP/1.1\r\n", drip: strings.Repeat("X-A: b\r\n", 100), want: headerTime},
		"whose body does not come":                   {atOnce: post(1000), want: requestTime},
		"whose body takes its time":                  {atOnce: post(1000), drip: strings.Repeat(" ", 1000), want: requestTime},
		"whose body takes its time, chunk by chunk":  {atOnce: strings.Replace(post(0), "Content-Length: 0", "Transfer-Encoding: chunked", 1), drip: strings.Repeat("1\r\n \r\n", 100), want: requestTime},
		"that does not read the answer":              {atOnce: post(len(whole)) + whole, deaf: true, want: requestTime},
		"that has been answered and asks no further": {atOnce: post(len(whole)) + whole, want: idleTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, p := besieged(t, func(o *Options) {
					if c.tls {
						o.Plaintext, o.GetCertificate = false, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
					}
				})
				conn, hungUp := p.dial("10.0.0.1:1")
				began := time.Now()
				if !c.deaf {
					go func() { _, _ = io.Copy(io.Discard, conn) }()
				}
				var sending sync.WaitGroup
				sending.Go(func() {
					_, err := io.WriteString(conn, c.atOnce)
					for i := 0; err == nil && i < len(c.drip); i++ {
						<-time.After(time.Second)
						_, err = io.WriteString(conn, c.drip[i:i+1])
					}
				})
				<-hungUp
				if took := time.Since(began); took < c.want || took > c.want+time.Second {
					t.Errorf("cut off after %s, want %s", took, c.want)
				}
				sending.Wait()
				synctest.Wait()
				if held := len(f.registry.sources.turns); held != 0 {
					t.Errorf("%d turns were not given back", held)
				}
			})
		})
	}
}

// ask sends a request as it is written and gives the status of the answer.
func ask(t *testing.T, conn net.Conn, text ...string) int {
	t.Helper()
	go func() {
		for _, part := range text {
			if _, err := io.WriteString(conn, part); err != nil {
				return // refused before all of it was said
			}
		}
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestARequestThatIsTooLargeIsNotRead(t *testing.T) {
	const kib64 = 64 << 10
	whole := report(uuid, least)
	start := "POST /register HTTP/1.1\r\nHost: registry\r\n"
	for name, c := range map[string]struct {
		text []string
		want int
	}{
		"a line of 64 KiB":      {[]string{"GET /systems/" + strings.Repeat("x", kib64)}, http.StatusRequestHeaderFieldsTooLarge},
		"a token of 64 KiB":     {[]string{start + "Authorization: Bearer " + strings.Repeat("x", kib64)}, http.StatusRequestHeaderFieldsTooLarge},
		"64 KiB of headers":     {[]string{start + strings.Repeat("X-A: b\r\n", kib64/8)}, http.StatusRequestHeaderFieldsTooLarge},
		"a token of 8 KiB":      {[]string{start + "Authorization: Bearer " + strings.Repeat("x", 8<<10) + fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n", len(whole)), whole}, http.StatusUnauthorized},
		"a body without an end": {[]string{start + "Authorization: Bearer mine\r\nTransfer-Encoding: chunked\r\n\r\n", strings.Repeat("400\r\n"+strings.Repeat(" ", 1024)+"\r\n", 2<<10)}, http.StatusRequestEntityTooLarge},
		"a body that says that it is too large, before it comes": {[]string{start + "Authorization: Bearer mine\r\nContent-Length: 1073741824\r\n\r\n", strings.Repeat(" ", metalprobe.MaxBody+1)}, http.StatusRequestEntityTooLarge},
		"a body without a token is not waited for":               {[]string{start + "Content-Length: 1000\r\n\r\n"}, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, p := besieged(t, nil)
				conn, hungUp := p.dial("10.0.0.1:1")
				began := time.Now()
				if got := ask(t, conn, c.text...); got != c.want || time.Since(began) > time.Second {
					t.Errorf("got %d after %s, want %d at once", got, time.Since(began), c.want)
				}
				_ = conn.Close()
				<-hungUp
				if len(f.stored()) != 0 {
					t.Error("something was stored")
				}
			})
		})
	}
}

// One source that holds connections open, or sends slowly over many, takes its share of them and no more.
func TestManyConnectionsOfOneSourceLeaveRoomForTheOthers(t *testing.T) {
	const most = 16
	whole := report(uuid, least)
	for name, says := range map[string]string{
		"that say nothing":           "",
		"that send a body slowly":    post(1000),
		"that send headers slowly":   "POST /register HTTP/1.1\r\n",
		"that were answered already": post(len(whole)) + whole,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, p := besieged(t, func(o *Options) { o.Connections, o.Concurrency = most, most })
				var held []net.Conn
				refused := 0
				for i := range most {
					conn, hungUp := p.dial(fmt.Sprintf("10.0.0.1:%d", i))
					go func() { _, _ = io.Copy(io.Discard, conn) }()
					go func() { _, _ = io.WriteString(conn, says) }()
					synctest.Wait()
					select {
					case <-hungUp:
						refused++
					default:
						held = append(held, conn)
					}
				}
				if len(held) != most/2 || refused != most-most/2 {
					t.Errorf("%d of %d connections are held, %d were refused", len(held), most, refused)
				}
				other, _ := p.dial("10.0.0.2:1")
				began := time.Now()
				if got := ask(t, other, post(len(whole))+whole); got != http.StatusCreated || time.Since(began) > time.Second {
					t.Errorf("another source: got %d after %s", got, time.Since(began))
				}
				for _, conn := range append(held, other) {
					_ = conn.Close()
				}
				synctest.Wait()
				again, _ := p.dial("10.0.0.1:1")
				if got := ask(t, again, post(len(whole))+whole); got != http.StatusCreated {
					t.Errorf("the same source, later: got %d", got)
				}
				_ = again.Close()
			})
		})
	}
}
