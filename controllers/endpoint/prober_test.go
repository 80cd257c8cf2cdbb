// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/redfish"
)

// device answers the way a BMC with one account does, and counts who knocked.
type fakeDevice struct {
	password string
	broken   error
	knocked  []string
}

func (d *fakeDevice) Get(_ string, _ redfish.Endpoint, c redfish.Credentials) redfish.BMC {
	return &fakeClient{device: d, credentials: c}
}

func (*fakeDevice) Forget(string)                                 {}
func (*fakeDevice) Park(string, redfish.ManagerSnapshot)          {}
func (*fakeDevice) Probe(context.Context, redfish.Endpoint) error { return nil }

type fakeClient struct {
	redfish.BMC
	device      *fakeDevice
	credentials redfish.Credentials
}

func (c *fakeClient) Manager(context.Context) (redfish.ManagerSnapshot, error) {
	c.device.knocked = append(c.device.knocked, c.credentials.Password)
	if c.device.broken != nil {
		return redfish.ManagerSnapshot{}, c.device.broken
	}
	if c.credentials.Password != c.device.password {
		return redfish.ManagerSnapshot{}, &redfish.AuthError{Status: 401}
	}
	return redfish.ManagerSnapshot{}, nil
}

func newTestProber(d *fakeDevice, service func(context.Context, redfish.Endpoint) error) *prober {
	return newProber(Options{Clients: d, probe: service}.withDefaults(), func(string) {})
}

func speaksRedfish(context.Context, redfish.Endpoint) error { return nil }

func with(passwords ...string) question {
	q := question{endpoint: redfish.Endpoint{Address: "10.0.0.7", Port: 443, Scheme: "https"}}
	for _, p := range passwords {
		q.candidates = append(q.candidates, redfish.Credentials{Username: "root", Password: p})
	}
	return q
}

// settled asks and waits for the answer.
func settled(p *prober, q question) answer {
	p.ask("e", "key", q)
	synctest.Wait()
	return p.ask("e", "key", q)
}

func TestEachCredentialIsOfferedOnceInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{password: "c"}
		p := newTestProber(d, speaksRedfish)
		defer p.Close()
		if a := settled(p, with("a", "b", "c", "d")); a.outcome != accepted || a.credentials.Password != "c" {
			t.Errorf("answer %v, want the third account accepted", a.outcome)
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, d.knocked); diff != "" {
			t.Error(diff)
		}
	})
}

func TestARefusedCredentialRestsWhoeverAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{password: "z"}
		p := newTestProber(d, speaksRedfish)
		defer p.Close()
		if a := settled(p, with("a")); a.outcome != refused {
			t.Fatalf("answer %v, want refused", a.outcome)
		}
		p.forget("e")
		settled(p, with("a"))
		settled(p, with("a", "b"))
		if diff := cmp.Diff([]string{"a", "b"}, d.knocked); diff != "" {
			t.Error(diff)
		}
	})
}

func TestARefusedCredentialIsOfferedAgainAfterTheCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{password: "z"}
		p := newTestProber(d, speaksRedfish)
		defer p.Close()
		settled(p, with("a"))
		time.Sleep(12*time.Hour + time.Second)
		settled(p, with("a"))
		if diff := cmp.Diff([]string{"a", "a"}, d.knocked); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatSpeaksNoRedfishIsOfferedNoCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{password: "a"}
		p := newTestProber(d, func(context.Context, redfish.Endpoint) error { return errors.New("a printer") })
		defer p.Close()
		if a := settled(p, with("a")); a.outcome != failed {
			t.Errorf("answer %v, want failed", a.outcome)
		}
		if len(d.knocked) > 0 {
			t.Errorf("a password was offered to a printer: %v", d.knocked)
		}
	})
}

func TestADeviceThatStaysAwayIsAskedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p := newTestProber(&fakeDevice{}, func(context.Context, redfish.Endpoint) error {
			asked++
			return &redfish.UnreachableError{Err: errors.New("no route")}
		})
		defer p.Close()
		for range 600 {
			p.ask("e", "key", with("a"))
			time.Sleep(time.Second)
		}
		if asked < 10 || asked > 16 {
			t.Errorf("asked %d times in ten minutes, want 10 to 16", asked)
		}
	})
}

func TestKnownCredentialsNeedOnlyTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{password: "a"}
		p := newTestProber(d, speaksRedfish)
		defer p.Close()
		q := with()
		q.confirm = true
		if a := settled(p, q); a.outcome != accepted || len(d.knocked) > 0 {
			t.Errorf("answer %v after %v, want accepted without a login", a.outcome, d.knocked)
		}
	})
}

func TestAnErrorInBetweenDoesNotSpendACredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDevice{password: "a", broken: &redfish.ResponseError{Status: 503}}
		p := newTestProber(d, speaksRedfish)
		defer p.Close()
		if a := settled(p, with("a")); a.outcome != failed {
			t.Fatalf("answer %v, want failed", a.outcome)
		}
		d.broken = nil
		time.Sleep(2 * time.Second)
		if a := settled(p, with("a")); a.outcome != accepted {
			t.Errorf("answer %v, want accepted", a.outcome)
		}
	})
}
