// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A process that is killed leaves its session behind, and so does a login whose answer is lost; and a BMC has room for a
// few only. No BMC tells whose a session is,
// so none is ever deleted that this process did not open. Instead no session is added to one that may be left over: while
// there is a session of our user that this process does not know, requests carry Basic authentication, until that session
// is gone or so much time has passed that it must have expired. So there is at most one session left over and one in use,
// however often the process is killed.

const (
	// sessionTimeout stands in where a BMC does not say after how long it ends a session that is not used, and the bounds
	// are those of the Redfish schema.
	sessionTimeout    = 30 * time.Minute
	minSessionTimeout = 30 * time.Second
	maxSessionTimeout = 24 * time.Hour
)

// openSessions are the sessions that this process holds, over all clients.
type openSessions struct{ known sync.Map } // by host and path

func sessionKey(host, uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	if _, rest, absolute := strings.Cut(path, "://"); absolute {
		_, path, _ = strings.Cut(rest, "/")
	}
	return host + " " + strings.ToLower(strings.Trim(path, "/"))
}

func (s *openSessions) add(host, uri string) { s.known.Store(sessionKey(host, uri), true) }

func (s *openSessions) remove(host, uri string) { s.known.Delete(sessionKey(host, uri)) }

func (s *openSessions) has(host, uri string) bool {
	_, known := s.known.Load(sessionKey(host, uri))
	return known
}

// orphaned says whether to do without a session for now, because one may be left over. The second result is how the BMC
// refused Basic authentication, with which it was asked; nil where it did not.
func (l *login) orphaned(o *operation, root *serviceRoot) (wait bool, refused *answer, err error) {
	if l.settled || !l.unheard && (l.c.options.Orphans == nil || !l.c.options.Orphans()) {
		l.settle()
		return false, nil, nil
	}
	now := time.Now()
	if !l.expired.IsZero() && !now.Before(l.expired) {
		l.settle()
		return false, nil, nil
	}
	left, refused, err := l.leftOver(o, root)
	if err != nil {
		return false, nil, err
	}
	if !left {
		l.settle()
		return false, refused, nil
	}
	if l.expired.IsZero() {
		l.expired = now.Add(l.readTimeout(o))
	}
	l.basicUntil = now.Add(min(l.c.options.BasicFor, l.expired.Sub(now)))
	return true, nil, nil
}

// mayBeLeft notes that a session of this process may be left over at the BMC, unknown to it.
func (l *login) mayBeLeft() { l.settled, l.unheard = false, true }

// account says what a login that has ended may have left at the BMC, whoever opened it. It is called under the lock.
func (l *login) account() error {
	now := time.Now()
	killed := l.c.options.Orphans != nil && l.c.options.Orphans()
	switch {
	case l.settled || !l.unheard && !killed, !l.expired.IsZero() && !now.Before(l.expired):
		l.left.clear(l)
		return nil
	case !l.expired.IsZero():
		l.left.note(l, l.c.base.Host, l.expired)
	}
	return fmt.Errorf("redfish: a session may be left at %s, because a login or its end was not confirmed; it expires by itself", l.c.base.Host)
}

func (l *login) settle() { l.settled, l.unheard, l.expired = true, false, time.Time{} }

// leftOver looks for a session of our user that this process did not open. A BMC whose list cannot be read counts as one
// without: it does not keep us from logging in.
func (l *login) leftOver(o *operation, root *serviceRoot) (left bool, refused *answer, err error) {
	uri := root.sessions()
	query := ""
	if expand := root.expand(); expand != "" && !o.c.recall().habits.noExpand {
		query = "?" + expand
	}
	for next := uri + query; next != ""; {
		var p page
		got, err := o.basicRead(next, &p)
		if got != nil && got.status == http.StatusUnauthorized {
			return false, got, nil
		}
		if err != nil {
			return false, nil, unreachable(err)
		}
		for _, raw := range p.Members.Values {
			ours, err := l.maybeOurs(o, raw)
			if ours || err != nil {
				return ours, nil, err
			}
		}
		next = string(p.Next)
	}
	return false, nil, nil
}

// maybeOurs says that a member of the collection is a session of our user and not one of this process.
func (l *login) maybeOurs(o *operation, raw json.RawMessage) (bool, error) {
	uri := memberURI(raw)
	if uri == "" || l.sessions.has(l.c.base.Host, uri) {
		return false, nil
	}
	var doc struct{ UserName text }
	if referenceOnly(raw) {
		if _, err := o.basicRead(uri, &doc); err != nil {
			return false, unreachable(err)
		}
	} else if err := json.Unmarshal(raw, &doc); err != nil {
		doc.UserName = "" // it says nothing of a user
	}
	return string(doc.UserName) == l.c.credentials.Username, nil
}

// readTimeout asks for the time after which the BMC ends a session that is not used.
func (l *login) readTimeout(o *operation) time.Duration {
	var service struct{ SessionTimeout json.Number }
	if _, err := o.basicRead("/redfish/v1/SessionService", &service); err != nil {
		return sessionTimeout
	}
	seconds, err := service.SessionTimeout.Int64()
	if err != nil || seconds <= 0 {
		return sessionTimeout
	}
	return min(max(time.Duration(seconds)*time.Second, minSessionTimeout), maxSessionTimeout)
}

// basicRead reads one resource with Basic authentication. The answer is returned beside an error where there was one.
func (o *operation) basicRead(uri string, out any) (*answer, error) {
	got, err := o.sendAs(credential{basic: true}, http.MethodGet, uri, nil, nil)
	if err != nil {
		return got, err
	}
	return got, o.decode(uri, got, out)
}

// unreachable keeps those errors that say that the BMC did not answer; what it answered instead is no hindrance.
func unreachable(err error) error {
	if is[*UnreachableError](err) {
		return err
	}
	return nil
}
