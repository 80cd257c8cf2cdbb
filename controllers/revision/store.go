// SPDX-License-Identifier: Apache-2.0

// Package revision keeps the compiled policies: the one in force, and those that servers are pinned to.
package revision

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// Store holds compiled bundles. It is safe for concurrent use.
type Store struct {
	// Reader finds PolicyRevisions; the cache serves.
	Reader client.Reader

	active *bundle.Bundle

	mu       sync.Mutex
	compiled map[string]*bundle.Bundle
	failed   map[string]error
}

// NewStore makes a store in which the embedded bundle is in force.
func NewStore(reader client.Reader, embedded *bundle.Bundle) *Store {
	return &Store{Reader: reader, active: embedded, failed: map[string]error{},
		compiled: map[string]*bundle.Bundle{embedded.Revision.Name: embedded}}
}

// Active is the bundle that servers adopt.
func (s *Store) Active() *bundle.Bundle { return s.active }

// Revision is the bundle of a PolicyRevision; false where there is no such revision or its content does not compile in
// this engine. The answer is remembered, a failure to read it is not.
func (s *Store) Revision(name string) (*bundle.Bundle, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.compiled[name]; ok {
		return b, true
	}
	if _, ok := s.failed[name]; ok {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	log := logf.Log.WithName("revision").WithValues("revision", name)
	revision := &policyv1alpha1.PolicyRevision{}
	if err := s.Reader.Get(ctx, types.NamespacedName{Name: name}, revision); err != nil {
		log.Error(err, "the revision cannot be read; servers pinned to it are kept as they are")
		return nil, false
	}
	b, err := compile(revision)
	if err != nil {
		s.failed[name] = err
		log.Error(err, "the revision does not compile in this engine; servers pinned to it are kept as they are")
		return nil, false
	}
	s.compiled[name] = b
	return b, true
}

// Lost says that there is no PolicyRevision of that name. What cannot be read is not lost.
func (s *Store) Lost(name string) bool {
	s.mu.Lock()
	_, known := s.compiled[name]
	s.mu.Unlock()
	if known {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return apierrors.IsNotFound(s.Reader.Get(ctx, types.NamespacedName{Name: name}, &policyv1alpha1.PolicyRevision{}))
}

// compile checks the content against the digest that it is stored under, then compiles it.
func compile(revision *policyv1alpha1.PolicyRevision) (*bundle.Bundle, error) {
	files, err := bundle.Unpack(revision.Spec.Content)
	if err != nil {
		return nil, err
	}
	if digest := files.Digest(); digest != revision.Spec.Digest {
		return nil, fmt.Errorf("the content has digest %s, the revision says %s", digest, revision.Spec.Digest)
	}
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil {
		return nil, err
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	return b, nil
}
