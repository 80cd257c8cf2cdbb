// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"hash/fnv"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/metalaw/metalaw/internal/uuids"
)

// kept is what is remembered of each BMC, by a key of it. It is safe for concurrent use.
type kept[V any] struct {
	mu sync.Mutex
	of map[string]V
}

func (k *kept[V]) get(key string) V {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[key]
}

func (k *kept[V]) put(key string, value V) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[string]V{}
	}
	k.of[key] = value
}

func (k *kept[V]) forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, key)
}

// rename gives the name by which the cache knows a BMC from now on, and lets it forget the former one; empty for none.
func (s *subject) rename(bmc, name string) {
	if old := s.names.get(bmc); old != "" && old != name {
		s.cache.Forget(old)
	}
	if name == "" {
		s.names.forget(bmc)
		return
	}
	s.names.put(bmc, name)
}

// index knows names by a key, each key as long as it has one.
type index map[string]sets.Set[string]

func (i index) add(key, name string) {
	if i[key] == nil {
		i[key] = sets.New[string]()
	}
	i[key].Insert(name)
}

func (i index) remove(key, name string) {
	i[key].Delete(name)
	if i[key].Len() == 0 {
		delete(i, key)
	}
}

// newcomers knows which BMCs wait for a change of another that holds their servers. It only triggers them earlier:
// each looks again by itself.
type newcomers struct {
	mu      sync.Mutex
	waiting index // newcomers, by incumbent
}

func (n *newcomers) await(incumbent, newcomer string) {
	if incumbent == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting.add(incumbent, newcomer)
}

// take returns the BMCs that wait for this one, and forgets them.
func (n *newcomers) take(incumbent string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer delete(n.waiting, incumbent)
	return n.waiting[incumbent].UnsortedList()
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
