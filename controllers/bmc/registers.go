// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"hash/fnv"
	"sync"

	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/internal/uuids"
)

// names knows by which name the cache knows each BMC at present.
type names struct {
	mu      sync.Mutex
	current map[string]string
}

// become lets the cache forget the former name of a BMC, where it had another.
func (n *names) become(cache *hardware.Cache[Reading], bmc, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.current[bmc]; old != "" && old != name {
		cache.Forget(old)
	}
	n.current[bmc] = name
}

// of is the name by which the cache knows a BMC; empty where it knows none.
func (n *names) of(bmc string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current[bmc]
}

func (n *names) drop(cache *hardware.Cache[Reading], bmc string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.current[bmc]; old != "" {
		cache.Forget(old)
	}
	delete(n.current, bmc)
}

// newcomers knows which BMCs wait for a change of another that holds their servers. It only triggers them earlier:
// each looks again by itself.
type newcomers struct {
	mu      sync.Mutex
	waiting map[string]map[string]bool
}

func (n *newcomers) await(incumbent, newcomer string) {
	if incumbent == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting[incumbent] == nil {
		n.waiting[incumbent] = map[string]bool{}
	}
	n.waiting[incumbent][newcomer] = true
}

// take returns the BMCs that wait for this one, and forgets them.
func (n *newcomers) take(incumbent string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []string
	for newcomer := range n.waiting[incumbent] {
		list = append(list, newcomer)
	}
	delete(n.waiting, incumbent)
	return list
}

// stripes are locks shared among system UUIDs.
type stripes struct{ locks [64]sync.Mutex }

// lock keeps other reconciles from making a Server for the same UUID, in either byte order.
func (s *stripes) lock(uuid string) (unlock func()) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(min(uuid, uuids.Swap(uuid)))) // does not fail
	l := &s.locks[h.Sum32()%uint32(len(s.locks))]
	l.Lock()
	return l.Unlock
}
