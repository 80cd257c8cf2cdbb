// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// line is a transport that answers after a while.
type line struct {
	takes  time.Duration
	closed *int
}

func (l line) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(l.takes)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func (l line) CloseIdleConnections() { *l.closed++ }

func TestATransportIsDroppedOnceABMCRests(t *testing.T) {
	type seen struct {
		Made, Closed int
		Kept         bool
	}
	const rest = 15 * time.Second
	for name, c := range map[string]struct {
		takes time.Duration
		do    func(ask func(), end func())
		want  seen
	}{
		"nothing was asked":               {do: func(_, _ func()) {}, want: seen{0, 0, false}},
		"soon after a request":            {do: func(ask, _ func()) { ask(); time.Sleep(rest - time.Second) }, want: seen{1, 0, true}},
		"long after a request":            {do: func(ask, _ func()) { ask(); time.Sleep(2 * rest) }, want: seen{1, 1, false}},
		"requests that follow each other": {do: func(ask, _ func()) { ask(); time.Sleep(10 * time.Second); ask(); time.Sleep(10 * time.Second); ask() }, want: seen{1, 0, true}},
		"requests with a pause":           {do: func(ask, _ func()) { ask(); time.Sleep(2 * rest); ask(); time.Sleep(2 * rest) }, want: seen{2, 2, false}},
		"one that takes longer than that": {takes: 3 * rest, do: func(ask, _ func()) { go ask(); time.Sleep(2 * rest) }, want: seen{1, 0, true}},
		"after one that took longer":      {takes: 3 * rest, do: func(ask, _ func()) { ask(); time.Sleep(2 * rest) }, want: seen{1, 1, false}},
		"it is closed":                    {do: func(ask, end func()) { ask(); end(); end() }, want: seen{1, 1, false}},
		"closed while something is asked": {takes: 3 * rest, do: func(ask, end func()) { go ask(); time.Sleep(rest); end() }, want: seen{1, 1, true}},
		"closed, and asked again":         {do: func(ask, end func()) { ask(); end(); ask(); time.Sleep(rest / 2) }, want: seen{2, 1, true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got seen
				w := &wire{rest: rest, open: newOpenWires(9)}
				w.dial = func() transport { got.Made++; return line{c.takes, &got.Closed} }
				c.do(func() {
					if _, err := w.RoundTrip(nil); err != nil {
						t.Error(err)
					}
				}, w.CloseIdleConnections)
				synctest.Wait()
				w.mu.Lock()
				got.Kept = w.present != nil
				w.mu.Unlock()
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				time.Sleep(10 * rest) // what is under way ends
			})
		})
	}
}

func TestOfTooManyBMCsThoseLoseTheirConnectionsThatWereNotAskedForLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 3
		open, closed := newOpenWires(most), make([]int, 6)
		wires := make([]*wire, len(closed))
		for i := range wires {
			takes := time.Duration(0)
			if i == 0 {
				takes = time.Minute
			}
			wires[i] = &wire{rest: time.Hour, open: open, dial: func() transport { return line{takes, &closed[i]} }}
		}
		ask := func(i int) {
			if _, err := wires[i].RoundTrip(nil); err != nil {
				t.Error(err)
			}
		}
		go ask(0) // it is not closed as long as it is asked
		for _, i := range []int{1, 2, 3, 1, 4, 5} {
			ask(i)
		}
		if diff := cmp.Diff([]int{0, 0, 1, 1, 0, 0}, closed); diff != "" {
			t.Errorf("closed while the first is asked (-want +got)\n%s", diff)
		}
		time.Sleep(2 * time.Minute)
		if diff := cmp.Diff([]int{0, 1, 1, 1, 0, 0}, closed); diff != "" {
			t.Errorf("closed afterwards (-want +got)\n%s", diff)
		}
		for _, w := range wires {
			w.CloseIdleConnections()
		}
		if len(open.last) != 0 {
			t.Errorf("%d wires are remembered", len(open.last))
		}
	})
}
