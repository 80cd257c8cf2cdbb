// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// Binding is what BindingAnnotation records.
type Binding struct {
	// Revision names the PolicyRevision that chose.
	Revision string `json:"revision"`
	// Score is the policy's score of the server.
	Score float64 `json:"score"`
	// RunnersUp is how many other servers the policy would have allowed.
	RunnersUp int `json:"runnersUp"`
	// At is when the server was reserved.
	At time.Time `json:"at,omitzero"`
}

// BindingOf reads how the claim that holds a server was bound; false where that is not recorded.
func BindingOf(s *v1alpha1.Server) (Binding, bool) {
	var b Binding
	err := json.Unmarshal([]byte(s.Annotations[v1alpha1.BindingAnnotation]), &b)
	return b, err == nil
}

// outcome is what became of a member of a bind attempt.
type outcome uint8

const (
	// wasDropped: the claim is no longer to be bound.
	wasDropped outcome = iota
	// wasBound: the claim has its server now.
	wasBound
	// wasLost: the server changed meanwhile, or may not be written; another one has to be taken, or a later version.
	wasLost
	// wasReserved: the server is written, and the claim could not be.
	wasReserved
	// inDoubt: it is not known whether the server was written.
	inDoubt
)

// bindAttempt is a decision that is carried out: for one claim, or for the members of a gang together.
type bindAttempt struct {
	gang     gangKey // the zero gangKey for a single claim
	members  []*member
	revision engine.Revision
	// committed says that some member of the gang names its server: from then on what is reserved is completed.
	committed bool
	// denied is what the API server refused so far; lost says that some server changed meanwhile.
	denied error
	lost   bool
	// failed are the servers of which a write came to nothing for the claim in this cycle.
	failed map[string]bool
}

// name names the claim or the gang for an error.
func (t *bindAttempt) name() string {
	if t.gang != (gangKey{}) {
		return "gang " + t.gang.namespace + "/" + t.gang.name
	}
	return "claim " + claimName(t.members[0].claim)
}

func (t *bindAttempt) uids() []types.UID {
	all := make([]types.UID, len(t.members))
	for i, m := range t.members {
		all[i] = m.claim.UID
	}
	return all
}

// member is one claim of a bind attempt.
type member struct {
	pendingClaim
	todo solve.Result
	// entry is the server in the version that was decided on; nil for one that only has to be named.
	entry *index.Entry
	// done and err are what became of it.
	done outcome
	err  error
}

// server is the name of the one that the member gets.
func (m *member) server() string {
	if m.entry != nil {
		return m.entry.Name()
	}
	return m.todo.Server
}

func (m *member) panicked(p any) {
	m.done, m.err = inDoubt, fmt.Errorf("bind claim %s: panic: %v", claimName(m.claim), p)
}

// binder writes decisions. Its workers write side by side.
type binder struct {
	client   client.Client // writes, and reads from the cache
	live     client.Reader // reads from the API server
	fleet    *index.Index
	pending  *pending
	guard    *guard
	messages *messages
	now      func() time.Time
	workers
	// freed says that a server was taken back for which some claim waits.
	freed atomic.Bool
}

// carryOut is the work of a worker, which has others help it with the writes. No claim ends while it goes on.
func (b *binder) carryOut(ctx context.Context, t *bindAttempt) {
	uids := t.uids()
	defer func() {
		if p := recover(); p != nil {
			for _, m := range t.members {
				if m.done != wasBound {
					m.panicked(p)
				}
			}
		}
	}()
	b.guard.bind(uids, func() {
		if slices.ContainsFunc(uids, func(uid types.UID) bool { return !b.pending.isOpen(uid) }) {
			return // it went, or ends, while the cycle was under way
		}
		if t.members[0].todo.Action == solve.Adopt {
			b.adopt(ctx, t.members[0])
		} else if b.reserveAll(ctx, t) {
			b.nameAll(ctx, t)
		}
	})
}

// reserveAll writes every member on its server, several at a time. It says whether all are written. Once one could not be, none is
// begun any more, and those that are under way by then are awaited.
func (b *binder) reserveAll(ctx context.Context, t *bindAttempt) bool {
	all := slices.DeleteFunc(slices.Clone(t.members), func(m *member) bool { return m.todo.Action != solve.Bind })
	return b.writeMembers(all, func(m *member) (goOn bool) {
		m.done, m.err = b.reserve(ctx, m, t.revision)
		return m.done == wasReserved
	})
}

// nameAll writes the servers on the claims. The first that is written is the commit: where it cannot be, no other is tried, and the
// next cycle looks at what is there. From then on the others follow several at a time, and one that is refused keeps no other from its
// server.
func (b *binder) nameAll(ctx context.Context, t *bindAttempt) {
	name := func(m *member) (goOn bool) {
		m.done, m.err = b.name(ctx, m)
		return !isUnanswered(m.err)
	}
	rest := t.members
	if !t.committed {
		goOn := name(rest[0])
		t.committed = rest[0].done == wasBound && rest[0].err == nil
		if !t.committed || !goOn {
			return
		}
		rest = rest[1:]
	}
	b.writeMembers(rest, name)
}

// writeMembers makes a write for each member, several at a time. It says whether all were made and went well.
func (b *binder) writeMembers(all []*member, write func(*member) (goOn bool)) bool {
	return b.each(len(all), func(i int) bool { return write(all[i]) }, func(i int, p any) { all[i].panicked(p) })
}

// reserve writes the claim on the server that is assumed for it, and takes away what is left of a former holder.
func (b *binder) reserve(ctx context.Context, m *member, revision engine.Revision) (outcome, error) {
	c, name := m.claim, m.entry.Name()
	binding := Binding{Revision: revision.Name, Score: m.todo.Score, RunnersUp: m.todo.Others, At: b.now().UTC().Truncate(time.Millisecond)}
	record, err := json.Marshal(binding)
	if err == nil {
		_, err = b.writeServer(ctx, m.entry, func(server *v1alpha1.Server) {
			server.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: c.Namespace, Name: c.Name}
			holdFor(server, c.UID)
			server.Annotations[v1alpha1.BindingAnnotation] = string(record)
		})
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		lostRaces.Inc()
		return wasLost, nil
	}
	if err != nil {
		err = fmt.Errorf("reserve server %s for claim %s: %w", name, claimName(c), err)
		if isDenied(err) { // nothing was written
			return wasLost, deniedError{name, err}
		}
		return inDoubt, err
	}
	logf.FromContext(ctx).Info("reserved", "claim", claimName(c), "claimUID", c.UID, "server", name,
		"revision", binding.Revision, "score", m.todo.Score, "rank", m.todo.Rank, "runnersUp", binding.RunnersUp)
	return wasReserved, nil
}

// holdFor records the UID of the claim that holds a server, in place of a former holder.
func holdFor(server *v1alpha1.Server, uid types.UID) {
	if server.Annotations == nil {
		server.Annotations = map[string]string{}
	}
	server.Annotations[v1alpha1.ClaimUIDAnnotation] = string(uid)
	delete(server.Annotations, v1alpha1.ReleasedClaimAnnotation)
	delete(server.Annotations, v1alpha1.ReleasedAtAnnotation)
	delete(server.Annotations, v1alpha1.ReleasedCountedAnnotation)
	delete(server.Annotations, v1alpha1.ReleasedSpecAnnotation)
}

// writeServer changes a server in one patch, under the optimistic lock of the version that was decided on.
func (b *binder) writeServer(ctx context.Context, e *index.Entry, change func(*v1alpha1.Server)) (*v1alpha1.Server, error) {
	server := index.Server(e).DeepCopy()
	change(server)
	if err := b.patch(ctx, server, mergepatch.Locked(index.Server(e))); err != nil {
		return nil, err
	}
	b.fleet.Wrote(server) // nothing of it is others', by the lock
	return server, nil
}

// patch makes a write once fewer than maxWriters are under way.
func (b *binder) patch(ctx context.Context, o client.Object, p client.Patch) error {
	select {
	case b.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.writing }()
	return b.client.Patch(ctx, o, p)
}

// name writes the server on the claim. The UID in the patch keeps it from a claim of the same name that was made
// anew; the version is left out on purpose, because clients write to claims all the time and none of it matters here.
func (b *binder) name(ctx context.Context, m *member) (outcome, error) {
	c, server := m.claim, m.server()
	if c.Spec.ServerRef != nil {
		return wasBound, nil
	}
	named := &v1alpha1.ServerClaim{}
	named.Namespace, named.Name = c.Namespace, c.Name
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": c.UID},
		"spec":     map[string]any{"serverRef": corev1.LocalObjectReference{Name: server}},
	})
	if err == nil {
		err = b.patch(ctx, named, client.RawPatch(types.MergePatchType, patch))
	}
	if err == nil {
		b.pending.wrote(named)
		return wasBound, nil
	}
	err = fmt.Errorf("name server %s on claim %s: %w", server, claimName(c), err)
	if e := b.fleet.Get(server); e != nil { // taken back if the claim is gone or names another one; else a later cycle completes it
		undone, failed := b.undo(ctx, e, false)
		if failed != nil {
			return wasReserved, fmt.Errorf("%w; and taking it back failed: %w", err, failed)
		}
		if undone {
			return wasDropped, nil
		}
	}
	return wasReserved, err
}

// adopt records the claim's UID on a server that both references join already. The claim is read uncached: the
// one in the cache may be the older of two of the same name.
func (b *binder) adopt(ctx context.Context, m *member) {
	c, e := m.claim, m.entry
	var live v1alpha1.ServerClaim
	if err := b.live.Get(ctx, client.ObjectKeyFromObject(c), &live); err != nil {
		m.err = client.IgnoreNotFound(err)
		return
	}
	m.done = wasLost
	if live.UID != c.UID || !live.DeletionTimestamp.IsZero() || policies.RelationOf(index.Server(e), &live) != policies.Adoptable {
		return
	}
	server, err := b.writeServer(ctx, e, func(server *v1alpha1.Server) { holdFor(server, live.UID) })
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		m.done, m.err = wasReserved, fmt.Errorf("adopt server %s for claim %s: %w", e.Name(), claimName(c), err)
		return
	}
	m.done = wasBound
	former := index.Server(e).Annotations[v1alpha1.ClaimUIDAnnotation]
	logf.FromContext(ctx).Info("adopted", "claim", claimName(c), "claimUID", live.UID, "server", server.Name, "formerUID", former)
	b.messages.adopted(&live, server, former)
}

func claimName(c *v1alpha1.ServerClaim) string { return c.Namespace + "/" + c.Name }
