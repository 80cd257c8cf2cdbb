// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// standing knows which Servers stand for which machines without asking the cache, which may lag: those that existed when
// this process made its first one, read once past the cache, and those that it made since. A leader that came before made
// its own before that; what anybody else makes the cache tells, and admission refuses a second Server for a machine.
type standing struct {
	mu     sync.Mutex
	loaded bool
	names  map[string]map[string]bool // of Servers, by UUID in one spelling
}

func newStanding() *standing { return &standing{names: map[string]map[string]bool{}} }

// standingPage is how many Servers are read at a time.
const standingPage = 500

// load reads all Servers once. A call while another loads waits for that.
func (s *standing) load(ctx context.Context, live client.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		return nil
	}
	for token := ""; ; {
		var page v1alpha1.ServerList
		if err := live.List(ctx, &page, client.Limit(standingPage), client.Continue(token)); err != nil {
			return fmt.Errorf("list the Servers: %w", err)
		}
		for i := range page.Items {
			s.add(page.Items[i].Spec.SystemUUID, page.Items[i].Name)
		}
		if token = page.Continue; token == "" {
			s.loaded = true
			return nil
		}
	}
}

func (s *standing) note(uuid, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(uuid, name)
}

// add is called with mu held.
func (s *standing) add(uuid, name string) {
	uuid = oneSpelling(uuid)
	if s.names[uuid] == nil {
		s.names[uuid] = map[string]bool{}
	}
	s.names[uuid][name] = true
}

func (s *standing) forget(uuid, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uuid = oneSpelling(uuid)
	delete(s.names[uuid], name)
	if len(s.names[uuid]) == 0 {
		delete(s.names, uuid)
	}
}

func (s *standing) of(uuid string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.names[oneSpelling(uuid)]))
}

// standsFor names a Server that stands for a machine, empty where there is none. It is called under the lock of the UUID.
// What the cache shows and what is remembered is found without a list; a Server that is remembered is read past the cache,
// because it may have gone.
func (v *scope) standsFor(ctx context.Context, uuid string) (string, error) {
	if err := v.standing.load(ctx, v.Reader); err != nil {
		return "", err
	}
	known, err := serversOf(ctx, v.Client, uuid)
	if err != nil {
		return "", err
	}
	if len(known) > 0 {
		return known[0].name, nil
	}
	for _, name := range v.standing.of(uuid) {
		stands, err := v.namedFor(ctx, name, uuid)
		if err != nil || stands {
			return name, err
		}
		v.standing.forget(uuid, name)
	}
	return "", nil
}

// namedFor looks past the cache whether the Server of a name stands for a machine.
func (v *scope) namedFor(ctx context.Context, name, uuid string) (bool, error) {
	server := &v1alpha1.Server{}
	if err := v.Reader.Get(ctx, types.NamespacedName{Name: name}, server); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("get Server %s: %w", name, err)
	}
	return isSystem(server.Spec.SystemUUID, uuid), nil
}
