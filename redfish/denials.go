// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"sync"
	"time"
)

// denials remembers which credentials a BMC refused, for the whole pool: a caller that goes to and fro between two
// passwords, or asks under two keys, must not lock the account either. Credentials are kept as salted digests only.
type denials struct {
	salt [32]byte

	mu      sync.Mutex
	refused map[[32]byte]*AuthError
	// lifted is until when a refusal that was lifted may not be lifted again.
	lifted map[[32]byte]time.Time
}

func newDenials() *denials {
	d := &denials{refused: map[[32]byte]*AuthError{}, lifted: map[[32]byte]time.Time{}}
	_, _ = rand.Read(d.salt[:]) // does not fail
	return d
}

func (d *denials) digest(address string, credentials Credentials) [32]byte {
	h := sha256.New()
	h.Write(d.salt[:])
	for _, part := range []string{address, credentials.Username, credentials.Password} {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return [32]byte(h.Sum(nil))
}

// standing returns the refusal that still holds, or nil.
func (d *denials) standing(digest [32]byte) *AuthError {
	d.mu.Lock()
	defer d.mu.Unlock()
	refusal := d.refused[digest]
	if refusal != nil && !time.Now().Before(refusal.Until) {
		delete(d.refused, digest)
		return nil
	}
	return refusal
}

// lift ends a refusal before its time, once in each cool-down and not before it is settle old; else it says when it may be
// lifted or ends by itself. Where none stands there is nothing to lift.
func (d *denials) lift(digest [32]byte, coolDown, settle time.Duration) (lifted bool, again time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	refusal := d.refused[digest]
	if refusal == nil || !now.Before(refusal.Until) {
		return true, time.Time{}
	}
	until := refusal.Until.Add(settle - coolDown)
	if lifted := d.lifted[digest]; lifted.After(until) {
		until = lifted
	}
	if now.Before(until) {
		if refusal.Until.Before(until) {
			until = refusal.Until
		}
		return false, until
	}
	maps.DeleteFunc(d.lifted, func(_ [32]byte, until time.Time) bool { return !now.Before(until) })
	delete(d.refused, digest)
	d.lifted[digest] = now.Add(coolDown)
	return true, time.Time{}
}

// once says that credentials were let off a short while ago, so that they are offered once and in one way only.
func (d *denials) once(digest [32]byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.lifted[digest])
}

// add keeps a refusal and drops those that have ended, which bounds the map.
func (d *denials) add(digest [32]byte, refusal *AuthError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(d.refused, func(_ [32]byte, old *AuthError) bool { return !now.Before(old.Until) })
	d.refused[digest] = refusal
}
