// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// slowLogin answers a login only once go on is closed, and says by came that one is under way.
func (f *fakeBMC) slowLogin() (came, goOn chan struct{}) {
	came, goOn = make(chan struct{}), make(chan struct{})
	f.once("POST "+sessions, func(w http.ResponseWriter, r *http.Request) {
		close(came)
		<-goOn
		f.usual(w, r)
	})
	return came, goOn
}

func TestALoginThatEndsAfterItsClientWasDroppedGivesItsSessionBack(t *testing.T) {
	for name, drop := range map[string]func(p *Pool, f *fakeBMC){
		"forgotten": func(p *Pool, _ *fakeBMC) { p.Forget("bmc") },
		"replaced by other credentials": func(p *Pool, f *fakeBMC) {
			p.Get("bmc", f.endpoint(), Credentials{Username: "admin", Password: "another"})
		},
		"closed": func(p *Pool, _ *fakeBMC) {
			if err := p.Close(t.Context()); err == nil {
				t.Error("a login under way counts as no session")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			came, goOn := f.slowLogin()
			pool := NewPool(PoolOptions{CloseTimeout: time.Millisecond})
			c := pool.Get("bmc", f.endpoint(), login0)
			clientLogin(t, c).c.options.CloseTimeout = time.Millisecond
			done := make(chan error)
			go func() { done <- read(t, c) }()
			<-came
			drop(pool, f)
			pool.closing.Wait() // whoever dropped it has given up
			clientLogin(t, c).c.options.CloseTimeout = time.Minute
			close(goOn)
			if err := <-done; !errors.Is(err, errClosed) {
				t.Errorf("the read ended in %v", err)
			}
			f.mu.Lock()
			open := len(f.tokens)
			f.mu.Unlock()
			if open != 0 {
				t.Errorf("%d sessions were left behind", open)
			}
			if err := pool.Close(t.Context()); err != nil {
				t.Errorf("nothing is left: %v", err)
			}
		})
	}
}

func TestACloseSaysWhereASessionMayBeLeft(t *testing.T) {
	ends := func(code int) func(*testing.T, *fakeBMC, *Pool) {
		return func(t *testing.T, f *fakeBMC, p *Pool) {
			if err := read(t, p.Get("bmc", f.endpoint(), login0)); err != nil {
				t.Fatal(err)
			}
			for token := range f.tokens {
				f.on("DELETE "+sessions+"/"+token, status(code))
			}
		}
	}
	for name, c := range map[string]struct {
		orphans func() bool
		before  func(*testing.T, *fakeBMC, *Pool)
		left    bool
	}{
		"no BMC was asked":                 {nil, func(*testing.T, *fakeBMC, *Pool) {}, false},
		"it was ended":                     {nil, ends(204), false},
		"it had ended":                     {nil, ends(404), false},
		"its token had ended":              {nil, ends(401), false},
		"the BMC failed":                   {nil, ends(500), true},
		"the BMC refused":                  {nil, ends(403), true},
		"the BMC did not answer":           {nil, func(t *testing.T, f *fakeBMC, p *Pool) { ends(204)(t, f, p); f.server.Close() }, true},
		"a client that was dropped before": {nil, func(t *testing.T, f *fakeBMC, p *Pool) { ends(500)(t, f, p); p.Forget("bmc"); p.closing.Wait() }, true},
		"a login whose answer was lost": {nil, func(t *testing.T, f *fakeBMC, p *Pool) {
			f.once("POST "+sessions, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			_ = read(t, p.Get("bmc", f.endpoint(), login0))
		}, true},
		"a BMC that does not say where it is": {nil, func(t *testing.T, f *fakeBMC, p *Pool) {
			f.on("POST "+sessions, func(w http.ResponseWriter, _ *http.Request) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.tokens["x"] = true
				w.Header().Set("X-Auth-Token", "x")
				w.WriteHeader(http.StatusCreated)
			})
			_ = read(t, p.Get("bmc", f.endpoint(), login0))
		}, true},
		"one of a killed process that is waited for": {killedBefore, func(t *testing.T, f *fakeBMC, p *Pool) {
			f.leftBehind("admin")
			_ = read(t, p.Get("bmc", f.endpoint(), login0))
		}, true},
		"one of a killed process that has gone": {killedBefore, func(t *testing.T, f *fakeBMC, p *Pool) {
			f.set(sessions, `{"Members":[]}`)
			_ = read(t, p.Get("bmc", f.endpoint(), login0))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			pool := NewPool(PoolOptions{Orphans: c.orphans})
			c.before(t, f, pool)
			for range 2 {
				err := pool.Close(context.WithoutCancel(t.Context()))
				if (err != nil) != c.left || err != nil && !strings.Contains(err.Error(), f.server.Listener.Addr().String()) {
					t.Errorf("closed with %v", err)
				}
			}
		})
	}
}
