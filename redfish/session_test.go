// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func read(t *testing.T, c BMC) error {
	t.Helper()
	_, err := c.System(t.Context(), systemURI)
	return err
}

func TestOneSessionServesAllReadsAndIsGivenBack(t *testing.T) {
	f := newFake(t)
	c := f.client(t)
	for range 3 {
		if err := read(t, c); err != nil {
			t.Fatal(err)
		}
	}
	wantLines(t, f.seen("GET"), "GET /redfish/v1/", "GET "+systemURI, "GET "+systemURI, "GET "+systemURI)
	if len(f.tokens) != 1 {
		t.Errorf("%d sessions are open, want 1", len(f.tokens))
	}
	for range 2 {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(f.tokens) != 0 || len(f.seen("DELETE")) != 1 {
		t.Error("the session was not given back exactly once")
	}
	if err := read(t, c); !errors.Is(err, errClosed) {
		t.Errorf("a closed client answered %v", err)
	}
}

func TestAnExpiredSessionCostsOneLoginAndOneRepeat(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	f.endSessions()
	if err := read(t, c); err != nil {
		t.Fatal(err)
	}
	got := f.seen()
	if len(got) != 3 || !strings.HasPrefix(got[1], "POST "+sessions) {
		t.Errorf("requests %q", got)
	}
	f.endSessions()
	if err := c.Reset(t.Context(), systemURI, self, ActionOn); err != nil {
		t.Error(err)
	}
}

func TestA401ThatStaysEndsInAuthErrorAfterOneRepeat(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	f.on("GET "+systemURI, status(401))
	err := read(t, c)
	var auth *AuthError
	if !errors.As(err, &auth) || Reason(err) != ReasonAuthenticationFailed || auth.Until.IsZero() {
		t.Errorf("error %v", err)
	}
	if n := len(f.seen("GET")); n != 2 {
		t.Errorf("%d reads, want 2", n)
	}
}

func TestAWrongPasswordIsTriedTwicePerCoolDownWhateverIsAsked(t *testing.T) {
	f := newFake(t)
	pool := poolOf(t)
	wrong := Credentials{Username: "admin", Password: "wrong"}
	c := pool.Get("bmc", f.endpoint(), wrong)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { _ = read(t, c) })
	}
	wg.Wait()
	first := read(t, c)
	if err := c.Reset(t.Context(), systemURI, self, ActionOn); Reason(err) != ReasonAuthenticationFailed || MayHaveHappened(err) {
		t.Errorf("a write ended in %v", err)
	}
	f.seen()
	// Going to and fro between passwords, asking under another key, or forgetting the key opens no new attempt.
	if err := read(t, pool.Get("bmc", f.endpoint(), login0)); err != nil {
		t.Errorf("the right password was held up: %v", err)
	}
	pool.Forget("bmc")
	again := read(t, pool.Get("other", f.endpoint(), wrong))
	if fmt.Sprint(again) != fmt.Sprint(first) || again == nil {
		t.Errorf("the refusal changed from %v to %v", first, again)
	}
	if f.logins != 2 {
		t.Errorf("the wrong password was offered %d times, want 2 (session, Basic)", f.logins)
	}
	if strings.Contains(fmt.Sprint(first), wrong.Password) {
		t.Errorf("the error holds the password: %v", first)
	}
}

func TestTheCoolDownEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDenials()
		key := d.digest("a:443", login0)
		d.add(key, &AuthError{Until: time.Now().Add(5 * time.Minute)})
		time.Sleep(5*time.Minute - time.Second)
		if d.standing(key) == nil {
			t.Error("ended early")
		}
		if d.standing(d.digest("b:443", login0)) != nil || d.standing(d.digest("a:443", Credentials{Username: "admin"})) != nil {
			t.Error("holds for another BMC or another password")
		}
		time.Sleep(time.Second)
		if d.standing(key) != nil {
			t.Error("does not end")
		}
	})
}

func TestBasicStandsInWhereNoSessionCanBeHad(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"session limit":      status(503),
		"no session service": status(404),
		"method not allowed": status(405),
		"login 401 by a bug": status(401),
		"session without a token": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", sessions+"/7")
			w.WriteHeader(201)
		},
		"a limit told by 403": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(403)
			_, _ = w.Write([]byte(`{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.8.SessionLimitExceeded"}]}}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.on("POST "+sessions, h)
			c := f.client(t)
			for range 3 {
				if err := read(t, c); err != nil {
					t.Fatal(err)
				}
			}
			got := f.seen()
			logins, freed := 0, 0
			for _, line := range got {
				if strings.HasPrefix(line, "POST") {
					logins++
				}
				if strings.HasPrefix(line, "DELETE "+sessions+"/7") {
					freed++
				}
			}
			if logins != 1 {
				t.Errorf("%d logins, want 1, then Basic: %q", logins, got)
			}
			if name == "session without a token" && freed != 1 {
				t.Errorf("the session without a token was not freed: %q", got)
			}
		})
	}
}

func TestABMCThatAnswersNothingButBusyIsNoReasonForBasic(t *testing.T) {
	f := newFake(t)
	f.on("POST "+sessions, status(503))
	f.on("GET /redfish/v1/Systems", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "7"); w.WriteHeader(503) })
	err := read(t, f.client(t))
	var response *ResponseError
	if !errors.As(err, &response) || response.RetryAfter != 7*time.Second || Reason(err) != ReasonInternalServerError {
		t.Errorf("error %v", err)
	}
}

func TestAPasswordThatMustBeChangedIsAnAuthError(t *testing.T) {
	f := newFake(t)
	f.on("POST "+sessions, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(403)
		_, _ = w.Write([]byte(`{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.8.PasswordChangeRequired","Message":"` + password + ` must be changed"}]}}`))
	})
	err := read(t, f.client(t))
	if Reason(err) != ReasonAuthenticationFailed || !strings.Contains(err.Error(), "PasswordChangeRequired") || strings.Contains(err.Error(), password) {
		t.Errorf("error %v", err)
	}
	if f.logins != 0 {
		t.Error("Basic was tried as well")
	}
}

func TestA403OnOneResourceIsNoCoolDown(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	f.once("GET "+systemURI, status(403))
	if err := read(t, c); Reason(err) != ReasonAuthenticationFailed {
		t.Errorf("error %v", err)
	}
	if err := read(t, c); err != nil {
		t.Errorf("the next read failed: %v", err)
	}
}

func TestNoPasswordIsSentToWhatIsNoRedfishService(t *testing.T) {
	f := newFake(t)
	f.on("GET /redfish/v1/", body("<html>router</html>"))
	if err := read(t, f.client(t)); err == nil {
		t.Fatal("no error")
	}
	wantLines(t, f.seen(), "GET /redfish/v1/")
}

func TestThePoolKeepsReplacesAndReturnsClients(t *testing.T) {
	f := newFake(t)
	pool := NewPool(PoolOptions{})
	a := pool.Get("bmc", f.endpoint(), login0)
	if err := read(t, a); err != nil {
		t.Fatal(err)
	}
	if pool.Get("bmc", f.endpoint(), login0) != a {
		t.Error("the same request gave another client")
	}
	changed := f.endpoint()
	changed.InsecureSkipVerify = true
	b := pool.Get("bmc", changed, login0)
	if b == a {
		t.Error("another endpoint gave the old client")
	}
	if err := read(t, b); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(f.tokens) != 0 {
		t.Errorf("%d sessions were left behind", len(f.tokens))
	}
	if err := read(t, pool.Get("new", f.endpoint(), login0)); !errors.Is(err, errClosed) {
		t.Errorf("a closed pool answered %v", err)
	}
}

func TestARefusedPasswordIsTriedAgainByHandOnceInEachCoolDown(t *testing.T) {
	f := newFake(t)
	pool := poolOf(t, PoolOptions{RetryPause: 1})
	c := pool.Get("bmc", f.endpoint(), Credentials{Username: "admin", Password: "wrong"})
	for i, want := range []struct {
		asked  bool // by hand, before the read
		done   bool
		logins int
	}{{false, false, 2}, {false, false, 2}, {true, true, 3}, {true, false, 3}, {true, false, 3}} {
		if want.asked {
			done, again := pool.Retry("bmc")
			if done != want.done || again.IsZero() != want.done {
				t.Errorf("%d: done %t, again %s", i, done, again)
			}
		}
		if err := read(t, c); Reason(err) != ReasonAuthenticationFailed || f.logins != want.logins {
			t.Errorf("%d: %v after %d logins, want %d", i, err, f.logins, want.logins)
		}
	}
	if done, _ := pool.Retry("nobody"); !done {
		t.Error("a BMC that nobody knows is held up")
	}
}

func TestACredentialThatIsTriedByHandIsOfferedOnceWhereOrphansAreLookedFor(t *testing.T) {
	f := newFake(t)
	f.leftBehind("admin")
	pool := poolOf(t, PoolOptions{RetryPause: 1, Orphans: killedBefore})
	c := pool.Get("bmc", f.endpoint(), Credentials{Username: "admin", Password: "wrong"})
	_ = read(t, c)
	before := f.logins
	pool.Retry("bmc")
	if err := read(t, c); Reason(err) != ReasonAuthenticationFailed || f.logins != before+1 {
		t.Errorf("%v after %d logins, want %d", err, f.logins, before+1)
	}
}

func TestARefusalIsLiftedOnceInEachCoolDownAndNotAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause = 5 * time.Minute
		d := newDenials()
		key := d.digest("a:443", login0)
		refuse := func() { d.add(key, &AuthError{Until: time.Now().Add(pause)}) }
		refuse()
		refused := time.Now()
		if done, again := d.lift(key, pause, time.Minute); done || !again.Equal(refused.Add(time.Minute)) {
			t.Errorf("lifted right after the refusal: %t, again at %s", done, again)
		}
		time.Sleep(time.Minute)
		if done, _ := d.lift(key, pause, time.Minute); !done || d.standing(key) != nil || !d.once(key) {
			t.Error("not lifted")
		}
		lifted := time.Now()
		time.Sleep(time.Minute)
		refuse()
		if done, again := d.lift(key, pause, time.Minute); done || !again.Equal(lifted.Add(pause)) || d.standing(key) == nil {
			t.Errorf("lifted a second time: %t, again at %s", done, again)
		}
		time.Sleep(4 * time.Minute)
		if done, _ := d.lift(key, pause, time.Minute); !done {
			t.Error("not lifted after the pause")
		}
	})
}
