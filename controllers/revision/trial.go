// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

// trial is what this manager makes of one revision. The content of a revision never changes, so it is made once. An object that
// is made anew under the same name, such as from a backup, is another one.
type trial struct {
	uid    types.UID // empty before the object was seen
	digest string
	turn   chan struct{} // full while it is under way
	// running is closed when the trial that goes on by itself is over; nil where none does.
	running chan struct{}
	// bundle is nil where the content does not compile; test is nil before the end.
	bundle *bundle.Bundle
	test   *rollout.Test
	// stored says that the object was seen, and gone that it was not at the last look for what may be forgotten.
	stored, gone bool
}

// refused is why nothing may move under the revision; empty where all is well.
func (t *trial) refused() string {
	if t.test == nil {
		return ""
	}
	return t.test.Refused
}

// try compiles and tests a revision, once. The error is for a test that was not brought to its end.
func (s *Store) try(ctx context.Context, revision *policyv1alpha1.PolicyRevision) (*trial, error) {
	t := s.trialOf(revision)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("revision %s: its test is under way: %w", revision.Name, ctx.Err())
	}
	if t.test != nil {
		return t, nil
	}
	b, found, err := s.examine(ctx, revision)
	if err != nil {
		return nil, err
	}
	s.mu.Lock() // others look at it without waiting for its end
	defer s.mu.Unlock()
	t.bundle, t.test = b, testOf(b, found)
	return t, nil
}

// trialOf is the trial of a revision, or a new one.
func (s *Store) trialOf(revision *policyv1alpha1.PolicyRevision) *trial {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.trials[revision.Name]
	if t == nil || !t.is(revision) {
		t = &trial{digest: revision.Spec.Digest, turn: make(chan struct{}, 1)}
		s.trials[revision.Name] = t
	}
	t.uid, t.stored = revision.UID, true
	return t
}

// is says that a trial was made of this very object.
func (t *trial) is(revision *policyv1alpha1.PolicyRevision) bool {
	return t.digest == revision.Spec.Digest && (t.uid == "" || t.uid == revision.UID)
}

// renewed forgets the trial of an object that was made anew since.
func (s *Store) renewed(revision *policyv1alpha1.PolicyRevision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch t := s.trials[revision.Name]; {
	case t == nil:
	case t.is(revision):
		t.stored = true
	default:
		delete(s.trials, revision.Name)
	}
}

// forget drops what was made of revisions that are not stored any more, once two looks in a row have found no use for it: it neither
// governs, nor is a server pinned to it. A revision that somebody deleted by force decides about its servers until they have left it.
func (s *Store) forget(ctx context.Context, revisions []policyv1alpha1.PolicyRevision) error {
	used, err := s.used(ctx, revisions)
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, t := range s.trials {
		switch {
		case err != nil || used[name] || !t.stored || t.test == nil:
			t.gone = false // also by a look that failed: what was seen before it is too old to count
		case t.gone:
			delete(s.trials, name)
		default:
			t.gone = true
		}
	}
	return err
}

// used are the revisions that are stored, govern, or have servers pinned to them. The servers are read only where others are known.
func (s *Store) used(ctx context.Context, revisions []policyv1alpha1.PolicyRevision) (map[string]bool, error) {
	used := s.rule.Load().names()
	used[s.embedded.Revision.Name] = true
	for i := range revisions {
		used[revisions[i].Name] = true
	}
	if !s.knowsOthers(used) {
		return used, nil
	}
	var servers v1alpha1.ServerList
	if err := s.Reader.List(ctx, &servers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("it is not known which revisions servers are pinned to: %w", err)
	}
	for i := range servers.Items {
		if l := servers.Items[i].Status.Lifecycle; l != nil {
			used[l.Revision] = true
		}
	}
	return used, nil
}

// knowsOthers says that anything is known of other revisions than these.
func (s *Store) knowsOthers(these map[string]bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.trials {
		if !these[name] {
			return true
		}
	}
	return false
}

// tryBeside has a revision tested by itself, once, for as long as that takes, and returns what is closed at the end.
func (s *Store) tryBeside(revision *policyv1alpha1.PolicyRevision) <-chan struct{} {
	t := s.trialOf(revision)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.running != nil {
		return t.running
	}
	running := make(chan struct{})
	t.running = running
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), testLimit)
		defer cancel()
		tried, err := s.try(ctx, revision)
		if err != nil {
			logf.Log.WithName("revision").Error(err, "the revision could not be tested; servers pinned to it are kept as they are",
				"revision", revision.Name)
		} else {
			logTrial(ctx, revision.Name, tried)
		}
		s.mu.Lock()
		t.running = nil
		s.mu.Unlock()
		close(running)
		s.tellChange() // those that could not wait are looked at again
	}()
	return running
}

// examine checks the content against the digest that it is stored under, and has it accepted. Content that is refused may
// compile nevertheless.
func (s *Store) examine(ctx context.Context, revision *policyv1alpha1.PolicyRevision) (*bundle.Bundle, diag.List, error) {
	files, damage := unpack(revision)
	if len(damage) > 0 {
		return nil, damage, nil
	}
	b, found, err := s.Accept(ctx, files, files) // whole as it is; its coverage was asked for when it was new
	if err != nil {
		return nil, nil, fmt.Errorf("revision %s: %w", revision.Name, err)
	}
	if b == nil || b.Revision.Digest != revision.Spec.Digest { // what only fails its tests is worth knowing all the same
		if b, _, err = bundle.Compile(files, policies.Vocabulary()); err != nil {
			return nil, nil, err
		}
	}
	return b, found, nil
}

// unpack reads the files of a revision. What is wrong with them is a finding, because trying again does not mend it.
func unpack(revision *policyv1alpha1.PolicyRevision) (files bundle.Files, damage diag.List) {
	wrong := ""
	files, err := bundle.Unpack(revision.Spec.Content)
	if err != nil {
		wrong = err.Error()
	} else if digest := files.Digest(); digest != revision.Spec.Digest {
		wrong = fmt.Sprintf("the content has digest %s, the revision says %s", digest, revision.Spec.Digest)
	}
	if wrong == "" {
		return files, nil
	}
	return nil, diag.List{{Severity: diag.Error, Code: "revision-content", File: "PolicyRevision " + revision.Name, Message: wrong,
		Hint: "delete the object and bring it back from a good backup; the runbook of CompileFailed says how"}}
}

// put takes in what came of a test that was made elsewhere.
func (s *Store) put(b *bundle.Bundle, found diag.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.trials[b.Revision.Name]; t == nil {
		s.trials[b.Revision.Name] = &trial{digest: b.Revision.Digest, turn: make(chan struct{}, 1), bundle: b, test: testOf(b, found)}
	}
}

// tested is what came of the test of a revision; nil where there was none.
func (s *Store) tested(name string) *rollout.Test {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.trials[name]; t != nil {
		return t.test
	}
	return nil
}

// refuses says that a revision was tested, and is refused.
func (s *Store) refuses(name string) bool {
	t := s.tested(name)
	return t != nil && t.Refused != ""
}

// loaded are the digests that this manager has compiled and tested, and those that it refuses.
func (s *Store) loaded() (compiled map[string]bool, refused map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	compiled, refused = map[string]bool{}, map[string]string{}
	for _, t := range s.trials {
		switch {
		case t.test == nil:
		case t.test.Refused == "":
			compiled[t.digest] = true
		default:
			refused[t.digest] = t.test.Refused
		}
	}
	return compiled, refused
}

// AcceptFunc is all that a bundle must pass before it may govern. Files that the bundle leaves out are taken from fill,
// which may be nil. What does not pass has an Error among the findings; the bundle is nil where it does not even compile.
// The error is for what no author can mend, and says nothing of the bundle.
type AcceptFunc func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error)

// accept is the AcceptFunc of stores that are given no other.
func accept(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
	b, report, err := bundle.Accept(ctx, files, policies.Acceptance(fill))
	return b, report.Found, err
}

// testOf says in the words of a status what came of a test.
func testOf(b *bundle.Bundle, found diag.List) *rollout.Test {
	t := &rollout.Test{Compiled: b != nil}
	if err := found.Err(); err != nil {
		t.Refused = err.Error()
	}
	for _, d := range found {
		if d.Severity != diag.Info { // that is for the author alone
			t.Findings = append(t.Findings, d.String())
		}
	}
	t.Total = len(t.Findings)
	if b != nil {
		t.MaxHalts, t.MaxErrors = int32(b.Settings.Canary.MaxHalts), int32(b.Settings.Canary.MaxErrors)
		t.NoError = !b.Lifecycle.Defines(engine.State(v1alpha1.StateError))
	}
	return t
}
