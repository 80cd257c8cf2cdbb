// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// moment is when, in the life of a write, the manager is killed.
type moment int

const (
	// beforehand: the write never reaches whom it is for.
	beforehand moment = iota
	// afterwards: it was carried out, and the manager never hears of it.
	afterwards
)

func (m moment) String() string { return [...]string{"before", "after"}[m] }

// point is one place to die.
type point struct {
	kind string
	when moment
}

func (p point) String() string { return p.when.String() + " " + p.kind }

// killer sees every write of the manager, and kills it at some of them.
type killer struct {
	// victim ends the manager at once. False: there is none at this moment.
	victim func() bool

	mu sync.Mutex
	// counts are the kinds of writes that were seen.
	counts map[string]int
	// died are the points at which the manager was killed.
	died map[point]int
	// limit is how many kills are wanted, done how many there were.
	limit, done int
	// choose says whether to die at a point; nil for never.
	choose func(point) bool
	log    []string
}

func newKiller(victim func() bool) *killer {
	return &killer{victim: victim, counts: map[string]int{}, died: map[point]int{}}
}

// arm begins to kill, up to a number of times, wherever choose says so.
func (k *killer) arm(limit int, choose func(point) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limit, k.choose = limit, choose
}

// onceEach chooses each point at its first occasion, first before the write and, when it is made again, after it: so that
// also what a manager does only once in the life of a cluster is met at both.
func (k *killer) onceEach(p point) bool {
	return k.died[p] == 0 && (p.when == beforehand || k.died[point{p.kind, beforehand}] > 0)
}

// passes is asked at each moment of each write, and says whether the write goes on.
func (k *killer) passes(kind string, when moment) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if when == beforehand {
		k.counts[kind]++
	}
	p := point{kind, when}
	if k.choose == nil || k.done >= k.limit || !k.choose(p) {
		return true
	}
	return !k.kill(p)
}

// killNow kills at no point in particular. It says whether there was something to kill.
func (k *killer) killNow() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done >= k.limit {
		return false
	}
	return k.kill(point{"at a random moment", afterwards})
}

// kill is called with the lock held. A manager that is gone already cannot be killed once more.
func (k *killer) kill(p point) bool {
	if !k.victim() {
		return false
	}
	k.died[p]++
	k.done++
	k.log = append(k.log, fmt.Sprintf("%d: %s", k.done, p))
	return true
}

func (k *killer) kills() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.done
}

// spent says that there are no kills left to be done.
func (k *killer) spent() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.done >= k.limit
}

// kinds lists what was seen, sorted.
func (k *killer) kinds() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.counts))
}

// seen is how often a kind was seen.
func (k *killer) seen(kind string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts[kind]
}

// missing lists the points of kinds at which the manager did not die.
func (k *killer) missing(kinds []string) []point {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []point
	for _, kind := range kinds {
		for _, when := range []moment{beforehand, afterwards} {
			if p := (point{kind, when}); k.died[p] == 0 {
				all = append(all, p)
			}
		}
	}
	return all
}

func (k *killer) table() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(k.counts)) {
		fmt.Fprintf(&out, "%5d  killed before %d, after %d  %s\n", k.counts[kind], k.died[point{kind, beforehand}], k.died[point{kind, afterwards}], kind)
	}
	return out.String()
}
