// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/internal/peers"
	"github.com/metalaw/metalaw/metalprobe"
)

// dialFrom connects from an address of this host.
func dialFrom(t *testing.T, source, to string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// beginBody sends the headers of a report, and waits until the registry asks for the body.
func beginBody(t *testing.T, conn net.Conn) *bufio.Reader {
	t.Helper()
	headers := strings.Replace(post(metalprobe.MaxBody), "\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n", 1)
	if _, err := io.WriteString(conn, headers); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("the registry answers %q, %v", line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil { // the empty line after it
		t.Fatal(err)
	}
	return answers
}

// Four addresses send 256 bodies, and none of the bodies ends before the agent is answered.
func TestATrueAgentIsAnsweredWhileOthersSendSlowly(t *testing.T) {
	f, address := serving(t, func(o *Options) { o.Plaintext = true })
	for i := range 256 {
		conn := dialFrom(t, fmt.Sprintf("127.0.0.%d", 2+i%4), address)
		beginBody(t, conn)
		if _, err := io.WriteString(conn, " "); err != nil {
			t.Fatal(err)
		}
	}
	whole := report(uuid, least)
	if got := ask(t, dialFrom(t, "127.0.0.1", address), post(len(whole))+whole); got != http.StatusCreated {
		t.Errorf("the agent got %d", got)
	}
	if f.inventory(uuid).Report == nil {
		t.Error("the report was not stored")
	}
}

// One source fills its room for bodies. It is refused at once, and another one is served.
func TestTheBodiesOfOneSourceTakeTheirRoomAndNoMore(t *testing.T) {
	f, address := serving(t, func(o *Options) { o.Plaintext = true })
	f.registry.bodies = peers.NewBudget(8*bodyStep, 2*bodyStep)
	first := dialFrom(t, "127.0.0.2", address)
	answers := beginBody(t, first)
	go func() { _, _ = io.WriteString(first, strings.Repeat(" ", metalprobe.MaxBody)) }()
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("a body beyond the room got %d", response.StatusCode)
	}
	for range 2 {
		beginBody(t, dialFrom(t, "127.0.0.2", address))
	}
	whole := report(uuid, least)
	if got := ask(t, dialFrom(t, "127.0.0.2", address), post(len(whole))+whole); got != http.StatusServiceUnavailable {
		t.Errorf("the source whose room is full got %d", got)
	}
	if got := ask(t, dialFrom(t, "127.0.0.1", address), post(len(whole))+whole); got != http.StatusCreated {
		t.Errorf("another source got %d", got)
	}
}
