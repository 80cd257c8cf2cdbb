// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// account is one user of a BMC.
type account struct {
	id       string
	name     string // empty: a free slot
	password string
	role     string
	enabled  bool
	// failures counts failed logins in a row, failedEver all of them.
	failures, failedEver int
	lockedUntil          time.Time
}

// setPassword also ends a lock-out, as an administrator's change does.
func (a *account) setPassword(password string) {
	a.password, a.failures, a.lockedUntil = password, 0, time.Time{}
}

func newAccounts(p *Profile, user, password string) []*account {
	first := &account{id: "1", name: user, password: password, role: "Administrator", enabled: true}
	accounts := []*account{first}
	if p.AccountSlots > 0 {
		// Slot 1 of such BMCs is reserved and never to be used; the factory account sits in slot 2.
		first.id = "2"
		accounts = append(accounts, &account{id: "1", role: "None"})
		for i := 3; i <= p.AccountSlots; i++ {
			accounts = append(accounts, &account{id: strconv.Itoa(i), role: "None"})
		}
	}
	return accounts
}

// login checks a name and a password and counts failures. A locked account fails with the right password too, and says
// nothing that a wrong password would not say. bmc.mu is held.
func (b *bmc) login(name, password string) (*account, bool) {
	now := b.fleet.clock.Now()
	i := slices.IndexFunc(b.accounts, func(a *account) bool { return a.name != "" && a.name == name })
	if i < 0 {
		return nil, false
	}
	a := b.accounts[i]
	if a.lockedUntil.After(now) {
		a.failedEver++
		return nil, false
	}
	if a.password != password || !a.enabled {
		a.failures++
		a.failedEver++
		if p := b.profile; p.LockoutAfter > 0 && a.failures >= p.LockoutAfter {
			a.lockedUntil = now.Add(p.LockoutFor)
			a.failures = 0
		}
		return nil, false
	}
	a.failures = 0
	return a, true
}

// Session is one open session of a BMC.
type Session struct {
	ID       string
	Username string
	LastUsed time.Time
}

type session struct {
	Session
	token string
}

// expireSessions forgets the sessions that were not used for the profile's time. bmc.mu is held.
func (b *bmc) expireSessions() {
	deadline := b.fleet.clock.Now().Add(-b.profile.SessionTimeout)
	b.sessions = slices.DeleteFunc(b.sessions, func(s *session) bool { return s.LastUsed.Before(deadline) })
}

func (b *bmc) endSessionsOf(user string) {
	b.sessions = slices.DeleteFunc(b.sessions, func(s *session) bool { return s.Username == user })
}

func (b *bmc) sessionByID(id string) *session {
	i := slices.IndexFunc(b.sessions, func(s *session) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return b.sessions[i]
}

// authenticate finds who sends the request. who is for the log of writes: session:ID, basic:USER or nothing.
// bmc.mu is held.
func (b *bmc) authenticate(r *http.Request) (user, who string, ok bool) {
	b.expireSessions()
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		for _, s := range b.sessions {
			if s.token == token {
				s.LastUsed = b.fleet.clock.Now()
				return s.Username, "session:" + s.ID, true
			}
		}
		return "", "session:?", false
	}
	name, password, given := r.BasicAuth()
	if !given {
		return "", "", false
	}
	who = "basic:" + name
	a, ok := b.login(name, password)
	if !ok {
		return "", who, false
	}
	return a.name, who, true
}

// openSession makes a session for user; nil where the BMC has no room for another. bmc.mu is held.
func (b *bmc) openSession(user string) *session {
	b.expireSessions()
	if limit := b.profile.MaxSessions; limit > 0 && len(b.sessions) >= limit {
		return nil
	}
	b.sessionNo++
	s := &session{
		Session: Session{ID: fmt.Sprint(b.sessionNo), Username: user, LastUsed: b.fleet.clock.Now()},
		token:   randomHex(b.dice, 16),
	}
	b.sessions, b.issued = append(b.sessions, s), append(b.issued, s.token)
	return s
}

// SessionTokens are the tokens of all sessions that there ever were, for a test that looks for them where they must not be.
func (m *Machine) SessionTokens() []string {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return slices.Clone(m.bmc.issued)
}
