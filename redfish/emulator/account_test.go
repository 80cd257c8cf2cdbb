// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"testing"
	"time"
)

const sessionsPath = "/redfish/v1/SessionService/Sessions"

type login = map[string]any

func TestOnlyTheRootAnswersWithoutALogin(t *testing.T) {
	f, m := startFleet(t, Options{InMemory: true}, MachineSpec{})
	c := call(t, f, m)
	c.user = ""
	for path, status := range map[string]int{
		"/redfish": 200, "/redfish/v1/": 200, "/redfish/v1": 200,
		"/redfish/v1/Systems": 401, "/redfish/v1/Managers": 401, "/redfish/v1/Nothing": 401, sessionsPath: 401,
	} {
		if res := c.do("GET", path, nil, status); status == 401 && res.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s does not say how to log in", path)
		}
	}
}

func TestASessionLivesUntilItIsGivenBackOrForgotten(t *testing.T) {
	clock := NewManualClock(time.Unix(1_700_000_000, 0))
	f, m := startFleet(t, Options{InMemory: true, Clock: clock}, MachineSpec{Profile: ProfileHPE})
	c := call(t, f, m)
	user, pass := c.user, c.pass
	c.user = ""
	open := func() string {
		res := c.do("POST", sessionsPath, login{"UserName": user, "Password": pass}, 201)
		c.header["X-Auth-Token"] = res.header.Get("X-Auth-Token")
		return res.header.Get("Location")
	}
	location := open()
	c.do("GET", m.SystemURI(), nil, 200)
	c.do("GET", location, nil, 200)
	if s := m.Sessions(); len(s) != 1 || s[0].Username != user {
		t.Errorf("sessions %v", s)
	}
	c.do("DELETE", location, nil, 200)
	c.do("GET", m.SystemURI(), nil, 401)

	open()
	clock.Advance(29 * time.Second)
	c.do("GET", m.SystemURI(), nil, 200) // use prolongs it
	clock.Advance(29 * time.Second)
	c.do("GET", m.SystemURI(), nil, 200)
	clock.Advance(31 * time.Second)
	c.do("GET", m.SystemURI(), nil, 401)

	open()
	m.EndSessions()
	c.do("GET", m.SystemURI(), nil, 401)

	open()
	m.SetPassword("another")
	c.do("GET", m.SystemURI(), nil, 401)
	c.do("POST", sessionsPath, login{"UserName": user, "Password": pass}, 401)
	if _, now := m.Credentials(); now != "another" {
		t.Errorf("credentials say %q", now)
	}
}

func TestABMCHasRoomForSoManySessions(t *testing.T) {
	f, m := startFleet(t, Options{InMemory: true}, MachineSpec{Tweak: func(p *Profile) { p.MaxSessions = 2 }})
	c := call(t, f, m)
	for _, status := range []int{201, 201, 503} {
		c.do("POST", sessionsPath, login{"UserName": c.user, "Password": c.pass}, status)
	}
	c.do("GET", m.SystemURI(), nil, 200) // Basic still works
}

func TestTooManyFailedLoginsLockAnAccount(t *testing.T) {
	clock := NewManualClock(time.Unix(1_700_000_000, 0))
	f, m := startFleet(t, Options{InMemory: true, Clock: clock}, MachineSpec{Profile: ProfileDell})
	c := call(t, f, m)
	right := c.pass
	c.pass = "wrong"
	for range 2 {
		c.do("GET", m.SystemURI(), nil, 401)
	}
	if m.LockedOut() {
		t.Fatal("locked after two failures")
	}
	c.do("POST", sessionsPath, login{"UserName": c.user, "Password": "wrong too"}, 401)
	if !m.LockedOut() || m.FailedLogins() != 3 {
		t.Fatalf("locked %v after %d failures", m.LockedOut(), m.FailedLogins())
	}
	c.pass = right
	c.do("GET", m.SystemURI(), nil, 401)
	clock.Advance(5*time.Minute + time.Second)
	c.do("GET", m.SystemURI(), nil, 200)
}

func TestAccountsAreMadeAsTheMakeWants(t *testing.T) {
	const accounts = "/redfish/v1/AccountService/Accounts"
	in := login{"UserName": "operator", "Password": "s3cret", "RoleId": "Administrator", "Enabled": true}

	f, m := startFleet(t, Options{InMemory: true}, MachineSpec{})
	c := call(t, f, m)
	made := c.do("POST", accounts, in, 201)
	if made.doc["Password"] != nil {
		t.Error("the password is shown")
	}
	c.do("POST", accounts, in, 400)
	c.do("POST", accounts, login{"UserName": "x"}, 400)
	c.user, c.pass = "operator", "s3cret"
	c.do("GET", m.SystemURI(), nil, 200)
	c.do("PATCH", made.header.Get("Location"), login{"Password": "n3w"}, 200)
	c.do("GET", m.SystemURI(), nil, 401)
	c.pass = "n3w"
	c.do("DELETE", made.header.Get("Location"), nil, 204)

	f, m = startFleet(t, Options{InMemory: true}, MachineSpec{Profile: ProfileDell})
	c = call(t, f, m)
	c.do("POST", accounts, in, 405)
	c.do("PATCH", accounts+"/1", in, 400)
	c.do("PATCH", accounts+"/3", in, 200)
	c.user, c.pass = "operator", "s3cret"
	c.do("GET", m.SystemURI(), nil, 200)
}
