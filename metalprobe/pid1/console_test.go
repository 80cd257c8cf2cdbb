// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"
)

func TestConsole(t *testing.T) {
	var out bytes.Buffer
	c := newConsole(func() time.Duration { return 3210 * time.Millisecond }, &out)
	c.say("network", "%s 10.0.2.15/24\n", "eth0")
	log := slog.New(c)
	log.Debug("not for operators")
	log.Info("reported", "server", "x", "disks", 2)
	log.Warn("bad \x1b[2J\nword", "error", io.EOF)
	c.flush()
	c.say("agent", "after the end")
	want := "metalprobe: [   3.21] network: eth0 10.0.2.15/24\r\n" +
		"metalprobe: [   3.21] agent: reported disks=2\r\n" +
		"metalprobe: [   3.21] agent: warn: bad  [2J word error=EOF\r\n"
	if out.String() != want {
		t.Errorf("got %q\nwant %q", out.String(), want)
	}
}

// stuck takes nothing until it is released.
type stuck struct{ released chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.released
	return len(p), nil
}

func TestAConsoleThatTakesNothingHoldsNobodyUp(t *testing.T) {
	s := stuck{make(chan struct{})}
	var out bytes.Buffer
	var mu sync.Mutex
	c := newConsole(func() time.Duration { return 0 }, s, writer(func(p []byte) { mu.Lock(); out.Write(p); mu.Unlock() }))
	for range 3 * consoleBacklog {
		c.say("agent", "x")
	}
	close(s.released)
	c.flush()
	mu.Lock()
	defer mu.Unlock()
	if out.Len() == 0 {
		t.Error("the other console printed nothing")
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
