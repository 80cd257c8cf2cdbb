// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// readTimeout bounds one read of the FleetControl, since others wait for it.
const readTimeout = 30 * time.Second

// together has those who ask for the FleetControl at the same time share one read. Nobody is given a read that began
// before they asked, so each sees a freeze that was stored by then, as with a read of their own. The zero value is ready.
type together struct {
	mu sync.Mutex
	// next has not begun, and whoever asks joins it; nil where there is none. last is the one that was begun or will be
	// begun last.
	next, last *reading
}

// reading is one read; what it found is there once done is closed.
type reading struct {
	done    chan struct{}
	control *policyv1alpha1.FleetControl
	err     error
}

// control is the FleetControl as it was read after this call; nil where there is none. It is the caller's own.
func (t *together) control(ctx context.Context, from client.Reader) (*policyv1alpha1.FleetControl, error) {
	r := t.join(ctx, from)
	select {
	case <-r.done:
		return r.control.DeepCopy(), r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *together) join(ctx context.Context, from client.Reader) *reading {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == nil {
		r := &reading{done: make(chan struct{})}
		// Who asked first may give up; the others still want an answer.
		go t.carryOut(context.WithoutCancel(ctx), from, r, t.last)
		t.next, t.last = r, r
	}
	return t.next
}

// carryOut reads once the read before is over, until when others may join.
func (t *together) carryOut(ctx context.Context, from client.Reader, r, before *reading) {
	defer close(r.done)
	if before != nil {
		<-before.done
	}
	t.mu.Lock()
	t.next = nil
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r.control, r.err = control(ctx, from)
}
