// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims/solve"
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

// BindingOf reads how the claim that holds a server was bound; false where nobody recorded that.
func BindingOf(s *v1alpha1.Server) (Binding, bool) {
	var b Binding
	err := json.Unmarshal([]byte(s.Annotations[v1alpha1.BindingAnnotation]), &b)
	return b, err == nil
}

// outcome is what became of a bind attempt.
type outcome uint8

const (
	// wasBound: the claim has its server now.
	wasBound outcome = iota
	// wasLost: the server changed under our hands, or may not be written; another one has to be taken, or a later version.
	wasLost
	// wasReserved: the server is written, and the claim could not be.
	wasReserved
	// inDoubt: nobody knows whether the server was written.
	inDoubt
	// wasDropped: the claim is no longer to be bound.
	wasDropped
)

// reserveServer writes the claim on the server that is assumed for it, and then the server on the claim. An error for which
// isDenied holds says that nothing was written.
func (s *Scheduler) reserveServer(ctx context.Context, t *bindAttempt) result {
	reserved := s.reserveOnly(ctx, t)
	if reserved.done != wasReserved {
		return reserved
	}
	return s.nameServer(ctx, t.claim, t.entry.Name())
}

// reserveOnly writes the claim on the server that is assumed for it.
func (s *Scheduler) reserveOnly(ctx context.Context, t *bindAttempt) result {
	c, name := t.claim, t.entry.Name()
	binding := Binding{Revision: t.revision.Name, Score: t.todo.Score, RunnersUp: t.todo.Others, At: s.now().UTC().Truncate(time.Millisecond)}
	server, err := s.writeServer(ctx, t.entry, func(server *v1alpha1.Server) error { return reserve(server, c, binding) })
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		lostRaces.Inc()
		return result{done: wasLost}
	}
	if err != nil {
		err = fmt.Errorf("reserve server %s for claim %s/%s: %w", name, c.Namespace, c.Name, err)
		if isDenied(err) {
			return result{done: wasLost, err: deniedError{name, err}}
		}
		return result{done: inDoubt, err: err}
	}
	logf.FromContext(ctx).Info("reserved", "claim", claimName(c), "claimUID", c.UID, "server", server.Name,
		"revision", binding.Revision, "score", t.todo.Score, "rank", t.todo.Rank, "runnersUp", binding.RunnersUp)
	return result{done: wasReserved}
}

// deniedError is the API server's refusal to write one server.
type deniedError struct {
	server string
	error
}

// Unwrap makes the API server's own error visible.
func (d deniedError) Unwrap() error { return d.error }

// refusedBy is the verdict for a claim whose writes are denied. It speaks of the first of them, and names no server.
func refusedBy(denied error) solve.Refusal {
	message := denied.Error()
	var status apierrors.APIStatus
	if errors.As(denied, &status) {
		message = status.Status().Message
	}
	var first deniedError
	if errors.As(denied, &first) {
		message = strings.ReplaceAll(message, " "+strconv.Quote(first.server), "")
		for range 2 { // two that stand side by side share what is between them
			message = whole(first.server).ReplaceAllString(message, "${1}the server${2}")
		}
	}
	return refusal(v1alpha1.ReasonBindingRefused,
		"the API server refuses to give the claim a server, and is asked again within a minute: "+message)
}

// whole finds the name of an object where it stands by itself, however it is quoted.
func whole(name string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^-.a-zA-Z0-9])` + regexp.QuoteMeta(name) + `($|[^-a-zA-Z0-9])`)
}

// isDenied says that the API server refused a write: it certainly did not happen, and would not the next time either.
func isDenied(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// reserve writes the claim on the server, and takes away what is left of a former holder.
func reserve(server *v1alpha1.Server, c *v1alpha1.ServerClaim, binding Binding) error {
	record, err := json.Marshal(binding)
	if err != nil {
		return fmt.Errorf("record the binding: %w", err)
	}
	server.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: c.Namespace, Name: c.Name}
	if server.Annotations == nil {
		server.Annotations = map[string]string{}
	}
	server.Annotations[v1alpha1.ClaimUIDAnnotation] = string(c.UID)
	server.Annotations[v1alpha1.BindingAnnotation] = string(record)
	delete(server.Annotations, v1alpha1.ReleasedClaimAnnotation)
	delete(server.Annotations, v1alpha1.ReleasedAtAnnotation)
	return nil
}

// writeServer changes a server in one patch, under the optimistic lock of the version that was decided on.
func (s *Scheduler) writeServer(ctx context.Context, e *index.Entry, change func(*v1alpha1.Server) error) (*v1alpha1.Server, error) {
	server := index.Server(e).DeepCopy()
	if err := change(server); err != nil {
		return nil, err
	}
	if err := s.patch(ctx, server, client.MergeFromWithOptions(index.Server(e), client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, err
	}
	s.fleet.Wrote(server) // nothing of it is others', by the lock
	return server, nil
}

// nameServer writes the server on the claim. The UID in the patch keeps it from a claim of the same name that was made
// anew; the version is left out on purpose, because clients write to claims all the time and none of it matters here.
func (s *Scheduler) nameServer(ctx context.Context, c *v1alpha1.ServerClaim, server string) result {
	if c.Spec.ServerRef != nil {
		return result{done: wasBound, claim: c, server: server}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": c.UID},
		"spec":     map[string]any{"serverRef": corev1.LocalObjectReference{Name: server}},
	})
	if err != nil {
		return result{done: wasReserved, err: fmt.Errorf("name server %s on claim %s/%s: %w", server, c.Namespace, c.Name, err)}
	}
	named := &v1alpha1.ServerClaim{}
	named.Namespace, named.Name = c.Namespace, c.Name
	if err := s.patch(ctx, named, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return s.afterRefusal(ctx, c, server, err)
	}
	s.pending.wrote(named)
	return result{done: wasBound, claim: named, server: server}
}

// afterRefusal takes the server back if the claim is gone or names another one. Otherwise a later pass completes it.
func (s *Scheduler) afterRefusal(ctx context.Context, c *v1alpha1.ServerClaim, server string, refused error) result {
	if e := s.fleet.Get(server); e != nil {
		undone, err := s.undo(ctx, e)
		if err != nil {
			return result{done: wasReserved, err: fmt.Errorf("name server %s on claim %s/%s: %w; and taking it back failed: %w",
				server, c.Namespace, c.Name, refused, err)}
		}
		if undone {
			return result{done: wasDropped}
		}
	}
	return result{done: wasReserved, err: fmt.Errorf("name server %s on claim %s/%s: %w", server, c.Namespace, c.Name, refused)}
}

// adoptServer records the claim's UID on a server that both references join already. The claim is read uncached: the
// one in the cache may be the older of two of the same name.
func (s *Scheduler) adoptServer(ctx context.Context, t *bindAttempt) result {
	c, e := t.claim, t.entry
	var live v1alpha1.ServerClaim
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(c), &live); err != nil {
		return result{done: wasDropped, err: client.IgnoreNotFound(err)}
	}
	if live.UID != c.UID || !live.DeletionTimestamp.IsZero() || RelationOf(index.Server(e), &live) != Adoptable {
		return result{done: wasLost}
	}
	server, err := s.writeServer(ctx, e, func(server *v1alpha1.Server) error {
		if server.Annotations == nil {
			server.Annotations = map[string]string{}
		}
		server.Annotations[v1alpha1.ClaimUIDAnnotation] = string(live.UID)
		delete(server.Annotations, v1alpha1.ReleasedClaimAnnotation)
		delete(server.Annotations, v1alpha1.ReleasedAtAnnotation)
		return nil
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return result{done: wasLost}
	}
	if err != nil {
		return result{done: wasReserved, err: fmt.Errorf("adopt server %s for claim %s/%s: %w", e.Name(), c.Namespace, c.Name, err)}
	}
	logf.FromContext(ctx).Info("adopted", "claim", claimName(c), "claimUID", live.UID, "server", server.Name,
		"formerUID", index.Server(e).Annotations[v1alpha1.ClaimUIDAnnotation])
	s.tellAdopted(&live, server, index.Server(e).Annotations[v1alpha1.ClaimUIDAnnotation])
	return result{done: wasBound, claim: &live, server: server.Name}
}

// told takes note of a binding that is written in both directions. The Event comes from whoever finds that the claim is Bound: until its
// server is Reserved that can take as long as a freeze lasts. Only the loop calls it.
func (s *Scheduler) told(ctx context.Context, c *v1alpha1.ServerClaim, server string) {
	s.verdicts.drop(c.UID)
	s.pending.settled(c.UID)
	delete(s.backoff, c.UID)
	bindings.Inc()
	if _, since := s.pending.get(c.UID); !since.IsZero() {
		bindingSeconds.Observe(s.now().Sub(since).Seconds())
	}
	logf.FromContext(ctx).Info("bound", "claim", claimName(c), "claimUID", c.UID, "server", server)
}

// tellAdopted says on both that the claim has what is on the machine. Where a former claim of the name held it, that is a
// warning: its author may have wanted a fresh machine.
func (s *Scheduler) tellAdopted(c *v1alpha1.ServerClaim, server *v1alpha1.Server, former string) {
	if s.recorder == nil {
		return
	}
	kind, of := corev1.EventTypeNormal, "; nobody had recorded which claim of that name is meant"
	if former != "" {
		kind, of = corev1.EventTypeWarning, " that a former claim of that name ("+former+") left there"
	}
	s.recorder.Eventf(c, server, kind, v1alpha1.ReasonServerAdopted, "Bind",
		"Took over server %s with the data%s", server.Name, of)
	s.recorder.Eventf(server, nil, kind, v1alpha1.ReasonServerAdopted, "Bind", "Taken over, by %s, with the data%s", unnamed, of)
}

// unnamed is the claim in an Event of a server. Those lie in namespace default, which more people read than may know the names of other
// tenants' claims; who may read the server finds it there.
const unnamed = "the claim that spec.serverClaimRef names"

func claimName(c *v1alpha1.ServerClaim) string { return c.Namespace + "/" + c.Name }
