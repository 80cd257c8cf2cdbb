// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

const (
	// phasePause is how much time passes between two writes of a phase: a boot has many, and each write wakes the manager.
	phasePause = time.Minute
	// phaseRetry is how often held phases are looked at.
	phaseRetry = 5 * time.Second
	// maxHeldPhases bounds what is held back; beyond it a phase is stored at once.
	maxHeldPhases = 8192
	// quarter is the progress of a wipe, in percent, that is worth a write by itself.
	quarter = 25
)

// phase answers POST /phase.
func (r *Registry) phase(request *http.Request) (*answer, *refusal) {
	allow := r.options.AllowUnauthenticated
	var report metalprobe.PhaseReport
	if refused := read(request, allow, &report); refused != nil {
		return nil, refused
	}
	g, refused := r.authorize(request, report.SystemUUID, allow, false)
	if refused != nil {
		return nil, refused
	}
	if err := report.Validate(); err != nil {
		return nil, invalid(err).about(g.server)
	}
	if printable(report.Phase) == "" {
		return nil, invalid(errors.New("phase: no character of it can be printed")).about(g.server)
	}
	if refused := r.running(g); refused != nil {
		return nil, refused
	}
	now := r.options.Now()
	next := policyv1alpha1.AgentPhase{Entry: g.entry, Name: printable(report.Phase), Detail: printable(report.Detail), Percent: report.Percent,
		Since: metav1.NewMicroTime(now), ReceivedAt: metav1.NewMicroTime(now)}
	due := time.Time{}
	changed, refused := r.update(request.Context(), g, func(stored *policyv1alpha1.ServerInventory) *refusal {
		due = storePhase(stored, next)
		return nil
	})
	if refused != nil {
		return nil, refused.about(g.server)
	}
	if due.IsZero() {
		r.phases.forget(g)
	} else if !r.phases.hold(g, next, due) {
		changed, refused = r.storeHeld(request.Context(), g, next)
	}
	if refused != nil {
		return nil, refused.about(g.server)
	}
	return accepted(http.StatusOK, changed), nil
}

// printable leaves out what a terminal would obey, such as escape sequences and marks that turn the direction of a text. A line break
// becomes a space.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case unicode.IsPrint(c):
			return c
		}
		return -1
	}, text))
}

// storePhase stores a phase that is due, and says when it will be where it is not. Due are the first phase of an entry, one that
// comes a while after the last, and every quarter of a wipe. A phase that says nothing new changes nothing.
func storePhase(stored *policyv1alpha1.ServerInventory, next policyv1alpha1.AgentPhase) (due time.Time) {
	former := stored.Phase
	if former == nil || former.Entry != next.Entry {
		stored.Phase = &next
		return time.Time{}
	}
	if former.Name == next.Name {
		next.Since = former.Since
	}
	at := former.ReceivedAt.Add(phasePause)
	switch {
	case former.Name == next.Name && former.Detail == next.Detail && former.Percent == next.Percent:
	case next.ReceivedAt.Before(&former.ReceivedAt): // a later one was stored while this one was held
	case next.Percent/quarter != former.Percent/quarter, !next.ReceivedAt.Time.Before(at):
		stored.Phase = &next
	default:
		return at
	}
	return time.Time{}
}

// storeHeld stores a phase whose time has come.
func (r *Registry) storeHeld(ctx context.Context, g grant, next policyv1alpha1.AgentPhase) (changed bool, refused *refusal) {
	return r.update(ctx, g, func(stored *policyv1alpha1.ServerInventory) *refusal {
		if former := stored.Phase; former != nil && former.Entry == next.Entry {
			if former.ReceivedAt.After(next.ReceivedAt.Time) {
				return nil
			}
			if former.Name == next.Name {
				next.Since = former.Since
			}
		}
		stored.Phase = &next
		return nil
	})
}

// heldPhases are the phases that agents told too soon after others: the last of each server and entry.
type heldPhases struct {
	mu   sync.Mutex
	held map[unseenEntry]heldPhase
}

type heldPhase struct {
	grant grant
	phase policyv1alpha1.AgentPhase
	due   time.Time
}

func newHeldPhases() *heldPhases { return &heldPhases{held: map[unseenEntry]heldPhase{}} }

// hold keeps a phase until it is due, and says whether there was room.
func (h *heldPhases) hold(g grant, phase policyv1alpha1.AgentPhase, due time.Time) bool {
	key := unseenEntry{g.server.UID, g.entry}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.held[key]; !known && len(h.held) >= maxHeldPhases {
		return false
	}
	h.held[key] = heldPhase{g, phase, due}
	return true
}

func (h *heldPhases) forget(g grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, unseenEntry{g.server.UID, g.entry})
}

// take gives those that are due, and holds them no longer.
func (h *heldPhases) take(now time.Time) []heldPhase {
	h.mu.Lock()
	defer h.mu.Unlock()
	var due []heldPhase
	for key, held := range h.held {
		if !held.due.After(now) {
			due = append(due, held)
			delete(h.held, key)
		}
	}
	return due
}

// storeDue stores the held phases whose time has come, but for those of a server that has moved on.
func (r *Registry) storeDue(ctx context.Context) {
	for _, held := range r.phases.take(r.options.Now()) {
		g, err := r.current(ctx, held.grant)
		if err == nil && (g.server.Status.Lifecycle == nil || g.server.Status.Lifecycle.Entry != held.phase.Entry) {
			continue
		}
		if err == nil {
			if _, refused := r.storeHeld(ctx, g, held.phase); refused != nil {
				err = errors.Join(refused.err, fmt.Errorf("refused: %s", refused.message))
			}
		}
		if err != nil {
			r.options.Log.Warn("phase not stored", "server", held.grant.server.Name, "phase", held.phase.Name, "error", err)
		}
	}
}

// storePhases does so until ctx ends.
func (r *Registry) storePhases(ctx context.Context) {
	ticker := time.NewTicker(phaseRetry)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.storeDue(ctx)
		}
	}
}
