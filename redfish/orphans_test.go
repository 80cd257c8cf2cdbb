// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// leftBehind puts a session into the BMC's list that nobody of this process opened.
func (f *fakeBMC) leftBehind(user string) {
	f.set(sessions, `{"Members":[{"@odata.id":"`+sessions+`/old"}]}`)
	f.set(sessions+"/old", `{"@odata.id":"`+sessions+`/old","UserName":"`+user+`"}`)
}

func killedBefore() bool { return true }

func TestASessionThatAKilledProcessMayHaveLeftGetsNoCompany(t *testing.T) {
	for name, c := range map[string]struct {
		list    func(f *fakeBMC)
		orphans func() bool
		logins  int
	}{
		"a session of our user that is not known":       {func(f *fakeBMC) { f.leftBehind("admin") }, killedBefore, 0},
		"a session of somebody else":                    {func(f *fakeBMC) { f.leftBehind("web") }, killedBefore, 1},
		"no session":                                    {func(f *fakeBMC) { f.set(sessions, `{"Members":[]}`) }, killedBefore, 1},
		"a list that cannot be read":                    {func(f *fakeBMC) { f.on("GET "+sessions, status(500)) }, killedBefore, 1},
		"a session that ends while the list is read":    {func(f *fakeBMC) { f.set(sessions, `{"Members":[{"@odata.id":"`+sessions+`/gone"}]}`) }, killedBefore, 1},
		"a BMC without Basic authentication":            {func(f *fakeBMC) { f.leftBehind("admin"); f.basicOff = true }, killedBefore, 1},
		"a former process that ended in order":          {func(f *fakeBMC) { f.leftBehind("admin") }, func() bool { return false }, 1},
		"a member that is there with all that it holds": {func(f *fakeBMC) { f.set(sessions, `{"Members":[{"@odata.id":"/s/1","UserName":"admin"}]}`) }, killedBefore, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			c.list(f)
			client := f.client(t, PoolOptions{Orphans: c.orphans})
			for range 3 {
				if err := read(t, client); err != nil {
					t.Fatal(err)
				}
			}
			if got := len(f.seen("POST")); got != c.logins {
				t.Errorf("%d logins, want %d", got, c.logins)
			}
			if got := len(f.seen("DELETE")); got != 0 {
				t.Errorf("%d sessions were deleted", got)
			}
		})
	}
}

func TestTheSessionsOfThisProcessAreNoOrphans(t *testing.T) {
	f := newFake(t)
	f.set(sessions, `{"Members":[]}`)
	pool := poolOf(t, PoolOptions{Orphans: killedBefore})
	if err := read(t, pool.Get("a", f.endpoint(), login0)); err != nil {
		t.Fatal(err)
	}
	for token := range f.tokens {
		f.set(sessions, `{"Members":[{"@odata.id":"`+sessions+`/`+token+`/","UserName":"admin"}]}`)
	}
	if err := read(t, pool.Get("b", f.endpoint(), login0)); err != nil {
		t.Fatal(err)
	}
	if len(f.tokens) != 2 {
		t.Errorf("%d sessions, want one for each client", len(f.tokens))
	}
}

func TestAWrongPasswordIsTriedTwiceAlsoWhereOrphansAreLookedFor(t *testing.T) {
	f := newFake(t)
	f.leftBehind("admin")
	c := poolOf(t, PoolOptions{Orphans: killedBefore}).Get("bmc", f.endpoint(), Credentials{Username: "admin", Password: "wrong"})
	for range 3 {
		if err := read(t, c); Reason(err) != ReasonAuthenticationFailed {
			t.Errorf("error %v", err)
		}
	}
	if f.logins != 2 {
		t.Errorf("the wrong password was offered %d times, want 2 (Basic, session)", f.logins)
	}
}

func TestAnOrphanIsWaitedForUntilItMustHaveExpired(t *testing.T) {
	for name, c := range map[string]struct {
		service string
		after   time.Duration
	}{
		"as long as the BMC says":         {`{"SessionTimeout":300}`, 5 * time.Minute},
		"half an hour where it says none": {`{}`, 30 * time.Minute},
		"no less than the schema allows":  {`{"SessionTimeout":1}`, 30 * time.Second},
		"a day at most":                   {`{"SessionTimeout":9999999}`, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.leftBehind("admin")
			f.set("/redfish/v1/SessionService", c.service)
			client := f.client(t, PoolOptions{Orphans: killedBefore})
			began := time.Now()
			if err := read(t, client); err != nil {
				t.Fatal(err)
			}
			login := clientLogin(t, client)
			if wait := login.expired.Sub(began); wait < c.after || wait > c.after+10*time.Second {
				t.Errorf("waits for %s, want %s", wait, c.after)
			}
			login.expired, login.basicUntil = began, began // the time has passed
			if err := read(t, client); err != nil {
				t.Fatal(err)
			}
			if len(f.tokens) != 1 {
				t.Errorf("%d sessions afterwards, want 1", len(f.tokens))
			}
		})
	}
}

func TestAnOrphanThatHasGoneIsNoticed(t *testing.T) {
	f := newFake(t)
	f.leftBehind("admin")
	client := f.client(t, PoolOptions{Orphans: killedBefore})
	if err := read(t, client); err != nil {
		t.Fatal(err)
	}
	f.set(sessions, `{"Members":[]}`)
	clientLogin(t, client).basicUntil = time.Now() // time to look again
	if err := read(t, client); err != nil {
		t.Fatal(err)
	}
	if got := f.seen("POST"); len(got) != 1 || !strings.HasPrefix(got[0], "POST "+sessions) {
		t.Errorf("logins %q, want 1", got)
	}
}

func TestALoginWhoseAnswerIsLostIsNotRepeatedWhileItsSessionMayStand(t *testing.T) {
	f := newFake(t)
	f.once("POST "+sessions, func(http.ResponseWriter, *http.Request) {
		f.leftBehind("admin")
		panic(http.ErrAbortHandler)
	})
	client := f.client(t)
	if err := read(t, client); err == nil {
		t.Fatal("the login did not fail")
	}
	if err := read(t, client); err != nil {
		t.Fatal(err)
	}
	if got := f.seen("POST"); len(got) != 1 {
		t.Errorf("logins %q, want 1", got)
	}
}

func clientLogin(t *testing.T, c BMC) *login {
	t.Helper()
	own, is := c.(*client)
	if !is {
		t.Fatalf("%T is no client", c)
	}
	return own.login
}

func TestASessionIsKnownHoweverItsURIIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := &openSessions{}
		known.add("10.0.0.1:443", "https://10.0.0.1/redfish/v1/SessionService/Sessions/Ab/")
		for uri, want := range map[string]bool{
			"/redfish/v1/SessionService/Sessions/Ab":  true,
			"/redfish/v1/sessionservice/Sessions/ab/": true,
			"/redfish/v1/SessionService/Sessions/Abc": false,
		} {
			if got := known.has("10.0.0.1:443", uri); got != want {
				t.Errorf("%s: %v", uri, got)
			}
		}
		if known.has("10.0.0.2:443", "/redfish/v1/SessionService/Sessions/Ab") {
			t.Error("a session of another BMC is taken for this one")
		}
	})
}
