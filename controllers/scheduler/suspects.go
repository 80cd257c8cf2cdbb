// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"
	"sync"
	"time"
)

// suspects are the servers that are written for a claim which may not stand behind that: they are looked at before the next pass.
// It is safe for concurrent use.
type suspects struct {
	mu      sync.Mutex
	servers map[string]struct{}
}

func newSuspects() *suspects { return &suspects{servers: map[string]struct{}{}} }

func (s *suspects) add(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[server] = struct{}{}
}

func (s *suspects) drop(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.servers, server)
}

// all returns them by name.
func (s *suspects) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.servers))
	for name := range s.servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// suspectAgain is when to look again at a server of which the cache and the API server tell different things.
const suspectAgain = time.Second

// again is when to look at those that are left; 0 for never.
func (s *suspects) again() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.servers) > 0 {
		return suspectAgain
	}
	return 0
}
