// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"net/http"
	"sync"
	"time"
)

// wire is the innermost layer. It makes the transport of a BMC when something is asked of that one, and drops it with its connections once
// nothing was asked for as long as a connection is kept: most BMCs of a large fleet are at rest, and what a transport remembers of
// connections that are closed takes 4 KB.
type wire struct {
	dial func() transport
	rest time.Duration
	open *openWires

	mu       sync.Mutex
	present  transport
	underway int
	asked    time.Time
	timer    *time.Timer
}

// transport is what goes out; *http.Transport is one.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper. A body that is read after it returned comes over a connection that outlives the transport.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	w.mu.Lock()
	if w.present == nil {
		w.present = w.dial()
		w.timer = time.AfterFunc(w.rest, w.drop)
	}
	out := w.present
	w.underway++
	w.mu.Unlock()
	defer w.answered()
	return out.RoundTrip(request)
}

// answered makes room where too many BMCs have a connection.
func (w *wire) answered() {
	w.mu.Lock()
	w.underway--
	w.asked = time.Now()
	var longest *wire
	if w.present != nil {
		longest = w.open.used(w)
	}
	w.mu.Unlock()
	if longest != nil {
		longest.shed()
	}
}

// shed drops the transport, unless something is asked.
func (w *wire) shed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.present != nil && w.underway == 0 {
		w.letGo()
	}
}

// drop is called after a while, and again until nothing was asked for as long.
func (w *wire) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch left := w.rest - time.Since(w.asked); {
	case w.present == nil: // it was closed meanwhile
	case w.underway > 0:
		w.timer.Reset(w.rest)
	case left > 0:
		w.timer.Reset(left)
	default:
		w.letGo()
	}
}

// letGo is called with the lock held.
func (w *wire) letGo() {
	w.present.CloseIdleConnections()
	w.timer.Stop()
	w.present, w.timer = nil, nil
	w.open.gone(w)
}

// CloseIdleConnections closes them now; what is asked later opens another one.
func (w *wire) CloseIdleConnections() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.present == nil:
	case w.underway > 0:
		w.present.CloseIdleConnections()
	default:
		w.letGo()
	}
}
