// SPDX-License-Identifier: Apache-2.0

// Package revision keeps the policies: it turns ConfigMaps into PolicyRevisions, puts them in force on the leader, and
// keeps them compiled on every replica.
package revision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

const (
	// readLimit is the time that one read of a revision may take, and that somebody waits for its test.
	readLimit = 10 * time.Second
	// testLimit is the time that a test may take, however busy the machine is.
	testLimit = 10 * time.Minute
)

// Store holds compiled bundles. It is safe for concurrent use.
type Store struct {
	// Reader finds PolicyRevisions; the cache serves.
	Reader client.Reader
	// Accept is what a bundle must pass. It may be replaced before anything is read.
	Accept AcceptFunc

	embedded *bundle.Bundle
	rule     atomic.Pointer[rule]

	mu      sync.Mutex
	trials  map[string]*trial
	changed []func()
}

// NewStore makes a store in which the embedded bundle is in force.
func NewStore(reader client.Reader, embedded *bundle.Bundle) *Store {
	s := &Store{Reader: reader, Accept: accept, embedded: embedded, trials: map[string]*trial{}}
	s.put(embedded, embedded.Findings)
	s.rule.Store(&rule{active: embedded})
	return s
}

// Active is the bundle that servers adopt where no canary governs them. Where the revision in force does not compile in
// this engine it is the embedded one under the name of that revision, which is Held.
func (s *Store) Active() *bundle.Bundle { return s.rule.Load().active }

// Governing is the bundle that a server would adopt: that of the canary in whose scope it is, else the active one. Where
// several canaries would have it the latest has. A canary that is paused, or refused by this engine, takes nobody.
func (s *Store) Governing(server *v1alpha1.Server) *bundle.Bundle {
	r := s.rule.Load()
	for i := range r.canaries {
		if c := &r.canaries[i]; c.matcher.Covers(server.Labels, server.Spec.SystemUUID) {
			return c.bundle
		}
	}
	return r.active
}

// Shadows are the bundles that are evaluated beside whatever governs.
func (s *Store) Shadows() []*bundle.Bundle { return s.rule.Load().shadows }

// Held says that nothing may move under a revision and nothing may be done, and why: this engine refuses it, or nothing
// governs at all. One that was refused stays held while restored content is tested. Governing may be older than this
// answer: a bundle that StandsIn may decide nothing.
func (s *Store) Held(name string) (why string, held bool) {
	r := s.rule.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.trials[name]
	switch {
	case r.missing != "":
		return r.missing, true
	case t != nil && t.refused() != "":
		return t.refused(), true
	case r.active.StandsIn && r.active.Revision.Name == name, (t == nil || t.test == nil) && slices.Contains(r.held, name):
		return restored, true
	}
	return "", false
}

// restored is why a revision is held that was refused, while an object which was made anew under its name is tested.
const restored = "its content was restored and is being tested"

// Changed has a function called, by any goroutine, whenever what governs has become another: the active bundle, a canary or
// its scope, a shadow, or what is held. It must not block.
func (s *Store) Changed(call func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = append(s.changed, call)
}

// Revision is the bundle of a PolicyRevision; false where there is no such revision or its content does not compile in
// this engine. One that compiles may be Held all the same. The answer is remembered, a failure to read it is not.
func (s *Store) Revision(name string) (*bundle.Bundle, bool) {
	s.mu.Lock()
	t := s.trials[name]
	if t != nil && t.test != nil {
		defer s.mu.Unlock()
		return t.bundle, t.bundle != nil
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	log := logf.Log.WithName("revision").WithValues("revision", name)
	revision := &policyv1alpha1.PolicyRevision{}
	if err := s.Reader.Get(ctx, types.NamespacedName{Name: name}, revision); err != nil {
		log.Error(err, "the revision cannot be read; servers pinned to it are kept as they are")
		return nil, false
	}
	select {
	case <-s.tryBeside(revision):
	case <-ctx.Done():
		log.Info("the revision is being tested; servers pinned to it are kept as they are until then")
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t = s.trials[name]
	if t == nil || t.test == nil {
		return nil, false
	}
	return t.bundle, t.bundle != nil
}

// Lost says that there is no PolicyRevision of that name. What cannot be read is not lost.
func (s *Store) Lost(name string) bool {
	s.mu.Lock()
	t := s.trials[name]
	known := t != nil && t.bundle != nil
	s.mu.Unlock()
	if known {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	return apierrors.IsNotFound(s.Reader.Get(ctx, types.NamespacedName{Name: name}, &policyv1alpha1.PolicyRevision{}))
}

// standIn has the place of a revision that is in force and does not compile in this engine: something has to say how BMCs
// are reached. Nothing moves under it, because the revision is held. It has no admission.rego: what the revision's own would
// refuse is not known, and that of the default would let it pass.
func (s *Store) standIn(revision *policyv1alpha1.PolicyRevision) *bundle.Bundle {
	b := *s.embedded
	b.Revision = engine.Revision{Name: revision.Name, Version: revision.Spec.Version, Digest: revision.Spec.Digest}
	b.Admission, b.StandsIn = nil, true
	return &b
}

func logTrial(ctx context.Context, name string, t *trial) {
	if why := t.refused(); why != "" {
		logf.FromContext(ctx).WithName("revision").Error(nil, "the revision is held: this engine refuses it, so nothing moves under it",
			"revision", name, "findings", why)
	}
}

// MayReport says whether a probe without a token may describe a server now.
func (s *Store) MayReport(server *v1alpha1.Server) (bool, error) {
	if server.Status.State != v1alpha1.StateDiscovery {
		return false, nil
	}
	return s.unauthenticated(server)
}

// MayReportBootState says whether the operating system of a claim, which has no token, may say that it is up.
func (s *Store) MayReportBootState(server *v1alpha1.Server) (bool, error) {
	if server.Status.State != v1alpha1.StateReserved || server.Spec.BootConfigurationRef == nil {
		return false, nil
	}
	return s.unauthenticated(server)
}

// unauthenticated is what the revision says that governs a server. One that cannot be loaded, or is held, says nothing.
func (s *Store) unauthenticated(server *v1alpha1.Server) (bool, error) {
	name, b, err := s.asked(server)
	if err != nil {
		return false, err
	}
	if why, held := s.Held(name); held {
		return false, fmt.Errorf("policy revision %s, which governs server %s, is held: %s; "+
			"let its PolicyRevision be mended, or promote a bundle that this manager accepts", name, server.Name, why)
	}
	return b.Settings.AllowUnauthenticated, nil
}

// IdentityRequired says whether a machine must be proved before a disk of it is erased, by the revision that governs its server.
func (s *Store) IdentityRequired(server *v1alpha1.Server) (bool, error) {
	_, b, err := s.asked(server)
	if err != nil {
		return false, err
	}
	return b.Settings.Wipe.Identity == bundle.IdentityProved, nil
}

// Missing says why nothing governs, so that nothing may be done to any machine; empty where a revision governs.
func (s *Store) Missing() string { return s.rule.Load().missing }

// asked is the revision that governs a server, or, before one does, the one that it is to come under.
func (s *Store) asked(server *v1alpha1.Server) (string, *bundle.Bundle, error) {
	if why := s.Missing(); why != "" {
		return "", nil, errors.New(why)
	}
	if l := server.Status.Lifecycle; l != nil && l.Revision != "" {
		b, loaded := s.Revision(l.Revision)
		if !loaded {
			return "", nil, fmt.Errorf("policy revision %s, which governs server %s, cannot be loaded; "+
				"see the conditions of that PolicyRevision", l.Revision, server.Name)
		}
		return l.Revision, b, nil
	}
	b := s.Governing(server)
	if b.StandsIn {
		return "", nil, fmt.Errorf("policy revision %s, which server %s is to come under, does not compile in this manager; "+
			"see the conditions of that PolicyRevision", b.Revision.Name, server.Name)
	}
	return b.Revision.Name, b, nil
}
