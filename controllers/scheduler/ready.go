// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies/index"
)

// giveBack is when a server was to be taken back from a claim, and it is not known that nothing was written.
type giveBack struct {
	server string
	at     time.Time
}

// ready looks up what is in doubt about a claim. It says whether anything may be done for it yet: a write that takes its server back may
// still arrive as long as the server is written for it, and would take it from a claim that names it by then.
func (r *run) ready(ctx context.Context, a asking) (bool, error) {
	uid := a.claim.UID
	if err := r.s.resolve(ctx, uid); err != nil {
		return false, err
	}
	back, is := r.s.returns[uid]
	if !is {
		return true, nil
	}
	now := r.s.now() // what is read now shows a write that arrived before
	if err := r.s.lookUp(ctx, back.server, uid); err != nil {
		return false, err
	}
	e := r.s.fleet.Get(back.server)
	isWritten := e != nil && index.Server(e).Annotations[v1alpha1.ClaimUIDAnnotation] == string(uid)
	if isWritten && now.Sub(back.at) < longestWrite {
		r.s.patience.lost(uid, now, longestWait)
		return false, nil
	}
	delete(r.s.returns, uid)
	return true, nil
}
