// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// everyWrite is each call of the port that writes, on a system and a BMC on which each has something to write.
var everyWrite = map[string]func(context.Context, BMC) error{
	"Reset":        func(ctx context.Context, c BMC) error { return c.Reset(ctx, systemURI, self, ActionOn) },
	"PowerOnOnce":  func(ctx context.Context, c BMC) error { return c.PowerOnOnce(ctx, systemURI, self, "Pxe") },
	"ClearBoot":    func(ctx context.Context, c BMC) error { return c.ClearBoot(ctx, systemURI, self) },
	"SetBootOrder": func(ctx context.Context, c BMC) error { return c.SetBootOrder(ctx, systemURI, self, []string{"Boot2"}) },
	"SetLED":       func(ctx context.Context, c BMC) error { return c.SetLED(ctx, systemURI, self, LEDLit) },
	"InsertMedia": func(ctx context.Context, c BMC) error {
		return c.InsertMedia(ctx, systemURI, self, MediaRequest{URL: imageOne, Ours: service})
	},
	"ResetManager": func(ctx context.Context, c BMC) error { return c.ResetManager(ctx, provenBySystem, true) },
}

// writable is a BMC on which every write of everyWrite has something to write.
func writable(t *testing.T) *fakeBMC {
	f := newFake(t)
	f.set(systemURI, strings.TrimSuffix(booting("Off", `"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Hdd"`), "}")+
		`,"VirtualMedia":{"@odata.id":"/vm"}}`)
	f.set("/vm", `{"Members":[{"@odata.id":"/vm/1"}]}`)
	drive := `{"@odata.id":"/vm/1","Id":"1","MediaTypes":["CD"],"Actions":{"#VirtualMedia.InsertMedia":{"target":"/vm/1/insert"}}`
	f.set("/vm/1", drive+`,"Inserted":false}`)
	f.on("POST /vm/1/insert", func(w http.ResponseWriter, _ *http.Request) {
		f.set("/vm/1", drive+`,"Inserted":true,"Image":"`+imageOne+`"}`)
		w.WriteHeader(http.StatusNoContent)
	})
	return f
}

func TestAGuardThatSaysNoKeepsEveryWriteFromBeingSent(t *testing.T) {
	changed := errors.New("the claim changed")
	for name, write := range everyWrite {
		t.Run(name, func(t *testing.T) {
			f := writable(t)
			c := f.client(t) // not logged in yet: sessions are not what the guard is about
			err := write(WithGuard(t.Context(), func(context.Context) error { return changed }), c)
			var notAsked *NotAskedError
			if !errors.As(err, &notAsked) || !errors.Is(err, changed) || MayHaveHappened(err) {
				t.Errorf("error %v", err)
			}
			sent := f.seen("POST", "PATCH", "DELETE")
			if len(sent) != 1 || !strings.HasPrefix(sent[0], "POST "+sessions) {
				t.Errorf("sent %q, want the login alone", sent)
			}
			if err := write(t.Context(), c); err != nil || len(f.seen("POST", "PATCH")) == 0 {
				t.Errorf("without a guard: %v", err)
			}
		})
	}
}

func TestAGuardIsAskedLastBeforeEachWrite(t *testing.T) {
	for name, write := range everyWrite {
		t.Run(name, func(t *testing.T) {
			f := writable(t)
			c := f.warm(t)
			ctx := WithGuard(t.Context(), func(context.Context) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.log = append(f.log, "GUARD")
				return nil
			})
			if err := write(ctx, c); err != nil {
				t.Fatal(err)
			}
			before := ""
			for _, line := range f.seen() {
				method, _, _ := strings.Cut(line, " ")
				if asked := before == "GUARD"; method != "GUARD" && writes(method) != asked {
					t.Errorf("%q follows %q", line, before)
				}
				before = method
			}
		})
	}
}

func TestAGuardMayEndAnOperationBetweenItsWrites(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	calls := 0
	err := c.PowerOnOnce(WithGuard(t.Context(), func(context.Context) error {
		if calls++; calls > 1 {
			return errors.New("no longer")
		}
		return nil
	}), systemURI, self, "Pxe")
	if err == nil || MayHaveHappened(err) {
		t.Errorf("error %v", err)
	}
	wantLines(t, f.seen("PATCH", "POST"), patchSystem+fullOverride)
}

func TestAGuardIsAskedOnceTheRequestHasItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := make(chan struct{}, 1)
		asked, sent := 0, 0
		rt := chain(func() string { return "bmc" }, "address", PoolOptions{}.withDefaults(), fleet, func(*http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
		})
		ctx := armed(WithGuard(t.Context(), func(context.Context) error { asked++; return nil }), http.MethodPost)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bmc/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		fleet <- struct{}{} // somebody else has the only place
		go func() { _, _ = rt.RoundTrip(req) }()
		synctest.Wait()
		if asked != 0 {
			t.Error("the guard was asked while the request still waited")
		}
		<-fleet
		synctest.Wait()
		if asked != 1 || sent != 1 {
			t.Errorf("asked %d times, sent %d", asked, sent)
		}
	})
}

func TestAGuardThatSaysNoDoesNotCountAsAFailureOfTheBMC(t *testing.T) {
	f := newFake(t)
	c := f.warm(t, PoolOptions{BreakerThreshold: 1})
	ctx := WithGuard(t.Context(), func(context.Context) error { return errors.New("no") })
	for range 3 {
		_ = c.Reset(ctx, systemURI, self, ActionOn)
	}
	if err := c.Reset(t.Context(), systemURI, self, ActionOn); err != nil {
		t.Error(err)
	}
}

func TestTheFenceOfAPoolIsAskedLastBeforeEveryWrite(t *testing.T) {
	lost := errors.New("another process leads")
	for name, write := range everyWrite {
		t.Run(name, func(t *testing.T) {
			f := writable(t)
			var order []string
			passes := true
			c := f.warm(t, PoolOptions{Fence: func(context.Context) error {
				order = append(order, "fence")
				if !passes {
					return lost
				}
				return nil
			}})
			guard := WithGuard(t.Context(), func(context.Context) error { order = append(order, "guard"); return nil })
			if err := write(guard, c); err != nil {
				t.Fatal(err)
			}
			for i, asked := range order {
				if want := []string{"guard", "fence"}[i%2]; asked != want {
					t.Fatalf("asked %q", order)
				}
			}
			if sent := len(f.seen("POST", "PATCH", "DELETE")); len(order) != 2*sent {
				t.Errorf("asked %q for %d writes", order, sent)
			}
		})
		t.Run(name+" does not pass it", func(t *testing.T) {
			f := writable(t)
			c := f.warm(t, PoolOptions{Fence: func(context.Context) error { return lost }})
			before := len(f.seen("POST", "PATCH", "DELETE"))
			if err := write(t.Context(), c); !errors.Is(err, lost) || MayHaveHappened(err) {
				t.Errorf("error %v", err)
			}
			if sent := f.seen("POST", "PATCH", "DELETE"); len(sent) != before {
				t.Errorf("sent %q", sent)
			}
		})
	}
}
