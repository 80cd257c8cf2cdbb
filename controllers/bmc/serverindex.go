// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/stored"
)

// serverIndex knows the Servers of each machine without the cache, which may lag. It reads all Servers once past the cache,
// and learns those that this process makes. A former leader made its own before that; admission refuses a second Server for
// a machine, and the cache shows those of others.
type serverIndex struct {
	mu     sync.Mutex
	loaded bool
	names  index // of Servers, by UUID in one spelling
}

// serverPage is how many Servers are read at a time.
const serverPage = 500

// load reads all Servers once. A call while another loads waits for that.
func (s *serverIndex) load(ctx context.Context, live client.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		return nil
	}
	for token := ""; ; {
		var page v1alpha1.ServerList
		if err := live.List(ctx, &page, client.Limit(serverPage), client.Continue(token)); err != nil {
			return fmt.Errorf("list the Servers: %w", err)
		}
		for i := range page.Items {
			s.names.add(oneSpelling(page.Items[i].Spec.SystemUUID), page.Items[i].Name)
		}
		if token = page.Continue; token == "" {
			s.loaded = true
			return nil
		}
	}
}

func (s *serverIndex) note(uuid, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names.add(oneSpelling(uuid), name)
}

func (s *serverIndex) forget(uuid, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names.remove(oneSpelling(uuid), name)
}

func (s *serverIndex) of(uuid string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sets.List(s.names[oneSpelling(uuid)])
}

// standsFor names a Server that stands for a machine, empty where there is none. It is called under the lock of the UUID.
// The cache and the index need no list. A Server of the index is read past the cache, because it may have gone (order 4).
func (v *scope) standsFor(ctx context.Context, uuid string) (string, error) {
	if err := v.servers.load(ctx, v.Reader); err != nil {
		return "", err
	}
	known, err := serversOf(ctx, v.Client, uuid)
	if err != nil {
		return "", err
	}
	if len(known) > 0 {
		return known[0].name, nil
	}
	for _, name := range v.servers.of(uuid) {
		stands, err := namedFor(ctx, v.Reader, name, uuid)
		if err != nil || stands {
			return name, err
		}
		v.servers.forget(uuid, name)
	}
	return "", nil
}

// namedFor looks past the cache whether the Server of a name stands for a machine.
func namedFor(ctx context.Context, live client.Reader, name, uuid string) (bool, error) {
	server, err := stored.One[v1alpha1.Server](ctx, live, "", name)
	if err != nil {
		return false, fmt.Errorf("get Server %s: %w", name, err)
	}
	return server != nil && isSystem(server.Spec.SystemUUID, uuid), nil
}
