// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/redfish/emulator"
)

func TestAParkedClientIsTakenOverByWhoAsksForTheSame(t *testing.T) {
	other := Credentials{Username: "admin", Password: "other"}
	for name, c := range map[string]struct {
		key         string
		endpoint    func(Endpoint) Endpoint
		credentials Credentials
		taken       bool
	}{
		"under another key":       {"bmc", nil, login0, true},
		"under the same key":      {"found", nil, login0, true},
		"not with other accounts": {"bmc", nil, other, false},
		"not with another trust":  {"bmc", func(e Endpoint) Endpoint { e.InsecureSkipVerify = true; return e }, login0, false},
		"not at another address":  {"bmc", func(e Endpoint) Endpoint { e.Port++; return e }, login0, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			pool := poolOf(t)
			found := pool.Get("found", f.endpoint(), login0)
			if _, err := found.Manager(t.Context()); err != nil {
				t.Fatal(err)
			}
			pool.Park("found", ManagerSnapshot{})
			pool.Forget("found") // it is nobody's any more
			e := f.endpoint()
			if c.endpoint != nil {
				e = c.endpoint(e)
			}
			if got := pool.Get(c.key, e, c.credentials) == found; got != c.taken {
				t.Errorf("taken over: %t, want %t", got, c.taken)
			}
			if pool.Get("third", f.endpoint(), login0) == found && c.taken {
				t.Error("taken over twice")
			}
		})
	}
}

func TestAParkedClientReportsUnderItsNewKey(t *testing.T) {
	f := newFake(t)
	var keys []string
	pool := poolOf(t, PoolOptions{OnRequest: func(key, _, _ string, _ time.Duration) { keys = append(keys, key) }})
	if _, err := pool.Get("found", f.endpoint(), login0).Manager(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool.Park("found", ManagerSnapshot{})
	keys = nil
	if err := read(t, pool.Get("bmc", f.endpoint(), login0)); err != nil || strings.Join(keys, " ") != "bmc" {
		t.Errorf("%v: requests of %v", err, keys)
	}
}

func TestAClientThatStaysParkedGivesItsSessionBack(t *testing.T) {
	f := newFake(t)
	ended := make(chan struct{}, 1)
	pool := poolOf(t, PoolOptions{HandOver: time.Millisecond, OnRequest: func(_, method, _ string, _ time.Duration) {
		if method == "DELETE" {
			ended <- struct{}{}
		}
	}})
	if _, err := pool.Get("found", f.endpoint(), login0).Manager(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool.Park("found", ManagerSnapshot{})
	select {
	case <-ended:
	case <-t.Context().Done():
	}
	if gone := f.seen("DELETE"); len(gone) != 1 {
		t.Errorf("given back: %q", gone)
	}
}

func TestAProbeCountsAsOtherRequestsDo(t *testing.T) {
	f := newFake(t)
	var asked []string
	pool := poolOf(t, PoolOptions{MaxInFlight: 1, OnRequest: func(_, method, outcome string, _ time.Duration) { asked = append(asked, method+" "+outcome) }})
	if err := pool.Probe(t.Context(), f.endpoint()); err != nil || len(asked) != 1 || asked[0] != "GET "+OutcomeOK {
		t.Errorf("%v, asked %q", err, asked)
	}
	pool.fleet <- struct{}{} // the fleet's one place is taken
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pool.Probe(ctx, f.endpoint()); err == nil || len(asked) != 1 {
		t.Errorf("it passed the limit of the fleet by: %v, asked %q", err, asked)
	}
	<-pool.fleet
}

func TestWhatABMCShowedIsHandedOverOnce(t *testing.T) {
	for name, c := range map[string]struct {
		// age is how old it is, and meanwhile what happens before it is asked for.
		age       time.Duration
		meanwhile func(*Pool)
		asked     bool
	}{
		"to the first who asks":            {asked: false},
		"within five minutes":              {age: 4 * time.Minute, asked: false},
		"not when it is older":             {age: 6 * time.Minute, asked: true},
		"not after a write":                {meanwhile: func(p *Pool) { p.clients["bmc"].wrote() }, asked: true},
		"not when it is to be tried again": {meanwhile: func(p *Pool) { p.Retry("bmc") }, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			pool := poolOf(t)
			seen, err := pool.Get("found", f.endpoint(), login0).Manager(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			seen.TakenAt = seen.TakenAt.Add(-c.age)
			pool.Park("found", seen)
			taken := pool.Get("bmc", f.endpoint(), login0)
			if c.meanwhile != nil {
				c.meanwhile(pool)
			}
			f.seen()
			for again := range 2 {
				got, err := taken.Manager(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				asked := len(f.seen()) > 0
				if want := c.asked || again > 0; asked != want {
					t.Errorf("call %d asked the BMC: %t, want %t", again+1, asked, want)
				}
				if !asked && !cmp.Equal(got, seen) {
					t.Errorf("handed over %s", cmp.Diff(seen, got))
				}
			}
		})
	}
}

func TestAClientThatWasDroppedHandsNothingOver(t *testing.T) {
	f := newFake(t)
	pool := poolOf(t)
	seen, err := pool.Get("found", f.endpoint(), login0).Manager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pool.Park("found", seen)
	taken := pool.Get("bmc", f.endpoint(), login0)
	pool.Forget("bmc")
	pool.closing.Wait()
	if _, err := taken.Manager(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("it answered with %v", err)
	}
}

// What a BMC is asked from the moment it is found until the power of its system is known.
func TestABMCThatIsFoundIsLoggedInToOnce(t *testing.T) {
	f := emulator.New(emulator.Options{Network: "127.69.0.0/16"})
	m := f.Add(emulator.MachineSpec{Profile: emulator.ProfileDell})
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	e := endpointOf(m.URL())
	e.InsecureSkipVerify = true
	user, password := m.Credentials()
	right := Credentials{Username: user, Password: password}
	pool := poolOf(t)
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return pool.Probe(ctx, e) },
		func(ctx context.Context) error {
			seen, err := pool.Get("endpoint", e, right).Manager(ctx)
			pool.Park("endpoint", seen)
			return err
		},
		func(ctx context.Context) error { _, err := pool.Get("bmc", e, right).Manager(ctx); return err },
		func(ctx context.Context) error {
			_, err := pool.Get("bmc", e, right).SystemDetail(ctx, m.SystemURI())
			return err
		},
	}
	for _, step := range steps {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]int{}
	for _, r := range f.Requests(emulator.Filter{}) {
		got[fmt.Sprintf("%s %s", r.Method, r.Pattern)] = r.Count
	}
	if diff := cmp.Diff(map[string]int{
		"GET /redfish/v1": 1, "POST /redfish/v1/SessionService/Sessions": 1, "GET /redfish/v1/Managers/{manager}": 1, "GET /redfish/v1/Systems": 1,
		"GET /redfish/v1/Systems/{system}/EthernetInterfaces": 1,
	}, got); diff != "" {
		t.Errorf("requests (-want +got)\n%s", diff)
	}
}
