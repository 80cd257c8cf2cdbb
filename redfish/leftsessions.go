// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"slices"
	"sync"
	"time"
)

// leftSessions are the BMCs at which clients that were dropped may have left a session: each from the moment it is dropped
// until the BMC has confirmed that nothing is left, or until that must have expired.
type leftSessions struct {
	mu   sync.Mutex
	left map[*login]leftSession
}

type leftSession struct {
	host  string
	until time.Time
}

func newLeftSessions() *leftSessions { return &leftSessions{left: map[*login]leftSession{}} }

func (s *leftSessions) note(l *login, host string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[l] = leftSession{host, until}
}

func (s *leftSessions) clear(l *login) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.left, l)
}

// hosts lists the BMCs that may hold a session now, sorted, each once.
func (s *leftSessions) hosts(now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hosts []string
	for l, left := range s.left {
		if !now.Before(left.until) {
			delete(s.left, l)
			continue
		}
		hosts = append(hosts, left.host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
