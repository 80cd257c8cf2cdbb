// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stmcginnis/gofish/schemas"
)

// login holds the one session of a client. Its lock is a channel, so that whoever waits for a login in progress still
// obeys its own deadline; only one login is ever under way, so a wrong password is offered once and not once per caller.
type login struct {
	shared
	c      *client
	digest [32]byte

	lock       chan struct{}
	token      string
	sessionURI string    // where the session is given back; empty where the BMC does not say
	basicUntil time.Time // Basic authentication until then, because no session could be had, or should be
	// closed is set before the lock is waited for, so that whoever holds it knows that nobody comes for the session any more.
	closed atomic.Bool

	settled bool      // no session is left over that nobody knows
	unheard bool      // a login of this process was not answered
	expired time.Time // when a session that is left over has expired; zero where none was seen
}

func newLogin(c *client, s shared) *login {
	return &login{c: c, shared: s, digest: s.refused.digest(c.base.Host, c.credentials), lock: make(chan struct{}, 1)}
}

func (l *login) acquire(ctx context.Context) error {
	if l.tryAcquire() {
		return nil
	}
	select {
	case l.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &UnreachableError{Address: l.c.base.Host, Method: http.MethodPost, Path: "(login)",
			Err: fmt.Errorf("gave up waiting for a login under way: %w", ctx.Err())}
	}
}

func (l *login) tryAcquire() bool {
	select {
	case l.lock <- struct{}{}:
		return true
	default:
		return false
	}
}

// release lets the next caller in. Where the client was dropped meanwhile, the session is given back here: whoever dropped
// it may have stopped waiting for a slow login.
func (l *login) release() {
	<-l.lock
	if !l.closed.Load() || !l.tryAcquire() {
		return // or whoever holds the lock now sees to it
	}
	defer func() { <-l.lock }()
	if l.token != "" {
		ctx, cancel := context.WithTimeout(context.Background(), l.c.options.CloseTimeout)
		defer cancel()
		_ = l.giveBack(&operation{c: l.c, ctx: ctx, left: 1})
	}
	_ = l.account()
}

// credential returns what the next request is sent with; it logs in where needed. While a refusal stands, it returns
// that refusal and asks nobody.
func (l *login) credential(o *operation) (credential, error) {
	if err := l.acquire(o.ctx); err != nil {
		return credential{}, err
	}
	defer l.release()
	if l.closed.Load() {
		return credential{}, errClosed
	}
	if refusal := l.refused.standing(l.digest); refusal != nil {
		return credential{}, refusal
	}
	if l.token != "" {
		return credential{token: l.token}, nil
	}
	if time.Now().Before(l.basicUntil) {
		return credential{basic: true}, nil
	}
	return l.open(o)
}

// rejected hears that a request with cred got a 401. Nil means: try again with a new login.
func (l *login) rejected(o *operation, cred credential, again bool, got *answer) error {
	if err := l.acquire(o.ctx); err != nil {
		return err
	}
	defer l.release()
	if cred.token != "" && !again {
		if l.token == cred.token { // else another caller has logged in meanwhile
			l.forget()
		}
		return nil
	}
	l.basicUntil = time.Time{}
	if cred.token != "" && l.token == cred.token {
		_ = l.giveBack(o) // what fails is remembered as a session that may be left over
		return l.deny(got, "a session was given, but is not accepted")
	}
	return l.deny(got, "")
}

// open logs in. The service root is read first, without credentials: what is no Redfish service gets no password.
func (l *login) open(o *operation) (credential, error) {
	root, err := o.root()
	if err != nil {
		return credential{}, err
	}
	wait, refused, err := l.orphaned(o, root)
	if err != nil {
		return credential{}, err
	}
	if wait {
		return credential{basic: true}, nil
	}
	if refused != nil && l.refused.once(l.digest) {
		return credential{}, l.deny(refused, "")
	}
	adapter := &gofishClient{op: o, cred: &credential{}}
	made, err := schemas.CreateSession(adapter, root.sessions(), l.c.credentials.Username, l.c.credentials.Password)
	if err != nil {
		return l.notOpened(o, root, adapter.last, refused, err)
	}
	l.sessionURI = cmp.Or(made.Session, memberURI(adapter.last.body))
	if l.token = made.Token; l.token == "" {
		return l.fallBack(o, root, adapter.last, "the BMC made a session but gave no token")
	}
	l.sessions.add(l.c.base.Host, l.sessionURI)
	return credential{token: l.token}, nil
}

// notOpened decides what to do after a login that gave no session. refused is how the BMC refused Basic authentication a
// moment ago, where it did.
func (l *login) notOpened(o *operation, root *serviceRoot, last, refused *answer, err error) (credential, error) {
	unreachable, lost := errors.AsType[*UnreachableError](err)
	if lost && unreachable.Sent { // the BMC may have made a session that nobody heard of
		l.mayBeLeft()
	}
	if lost || last == nil {
		return credential{}, err
	}
	id, _ := errorMessage(last.body)
	switch {
	case last.status >= 300 && last.status < 400:
		return credential{}, err
	case last.status == http.StatusForbidden && !strings.Contains(id, "SessionLimit"):
		return credential{}, l.deny(last, "login refused")
	case last.status == http.StatusUnauthorized && (refused != nil || l.refused.once(l.digest)):
		return credential{}, l.deny(last, "")
	}
	return l.fallBack(o, root, last, fmt.Sprintf("no session could be had (status %d %s)", last.status, id))
}

// fallBack proves Basic authentication by one read that needs it, and keeps to it for a while. Proving it here, under
// the lock, bounds the attempts with a wrong password: two in each cool-down (a session, then Basic, because some BMCs
// answer 401 to a login for want of sessions), and one more where somebody has a refusal lifted by hand.
func (l *login) fallBack(o *operation, root *serviceRoot, session *answer, why string) (credential, error) {
	basic := credential{basic: true}
	got, err := o.raw(o.ctx, http.MethodGet, cmp.Or(string(root.Systems), root.sessions()), nil, nil, basic)
	response, answered := errors.AsType[*ResponseError](err)
	if err != nil && !(answered && response.Status >= 200 && response.Status < 300) {
		return credential{}, err
	}
	if got != nil && got.status == http.StatusUnauthorized {
		if session.status == http.StatusUnauthorized {
			return credential{}, l.deny(session, "")
		}
		return credential{}, l.deny(got, why+", and Basic authentication is refused")
	}
	if got != nil && (got.status >= 500 || got.status == http.StatusTooManyRequests) {
		return credential{}, o.failure(http.MethodGet, string(root.Systems), got)
	}
	l.basicUntil = time.Now().Add(l.c.options.BasicFor)
	if l.sessionURI != "" { // a session without a token still occupies a place
		if _, err := o.sendAs(basic, http.MethodDelete, l.sessionURI, nil, nil); err != nil && !statusIs(err, http.StatusNotFound) {
			l.mayBeLeft()
		}
		l.sessionURI = ""
	}
	return basic, nil
}

// deny records a refusal for the cool-down. The BMC's own words are left out: some repeat what was sent.
func (l *login) deny(got *answer, message string) error {
	id, _ := errorMessage(got.body)
	refusal := &AuthError{Address: l.c.base.Host, Status: got.status, Message: strings.TrimSpace(message + " " + id),
		Until: time.Now().Add(l.c.options.LoginCoolDown)}
	l.refused.add(l.digest, refusal)
	return refusal
}

// dropSession forgets a session that ended with its BMC.
func (l *login) dropSession(o *operation) {
	if l.acquire(o.ctx) == nil {
		l.forget()
		l.release()
	}
}

// forget drops the session without a word to the BMC.
func (l *login) forget() (token, uri string) {
	token, uri = l.token, l.sessionURI
	l.token, l.sessionURI = "", ""
	l.sessions.remove(l.c.base.Host, uri)
	return token, uri
}

// giveBack ends the session at the BMC and forgets it. The error says that the BMC did not confirm it; a session that had
// ended already is confirmed.
func (l *login) giveBack(o *operation) error {
	token, uri := l.forget()
	if token == "" {
		return nil
	}
	if uri == "" {
		l.mayBeLeft()
		return fmt.Errorf("redfish: %s did not say where its session is, so that it cannot be ended; it expires by itself", l.c.base.Host)
	}
	err := schemas.DeleteSession(&gofishClient{op: o, cred: &credential{token: token}}, uri)
	if err == nil || statusIs(err, http.StatusUnauthorized, http.StatusNotFound) {
		return nil
	}
	l.mayBeLeft()
	return err
}

// close ends the login for good. It is noted as one that may leave a session behind before its lock is waited for, so that
// one which is still under way when ctx ends counts until it has ended.
func (l *login) close(o *operation) error {
	l.left.note(l, l.c.base.Host, time.Now().Add(sessionTimeout))
	l.closed.Store(true)
	if err := l.acquire(o.ctx); err != nil {
		return err
	}
	defer func() { <-l.lock }()
	if err := l.giveBack(o); err != nil {
		_ = l.account()
		return err
	}
	return l.account()
}
