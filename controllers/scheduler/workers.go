// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"sync"
	"sync/atomic"
)

// maxWriters is how many writes are under way at once: those of single claims, and those of the members of gangs. A binding is two
// writes, one after the other, and an API server answers one in 5 to 40 ms: 16 writers keep two to eight of its cores busy, and stay
// far below the 200 changes under way at which it begins to turn clients away. More would only wait there.
const maxWriters = 16

// workers is the worker pool.
type workers struct {
	// launch has a worker do something; await is called by the loop before it waits for one of so many workers.
	launch func(work func())
	await  func(flying int)
	// fork has so many workers do the same work side by side, and returns once all are done.
	fork func(workers int, work func())
	// writing has room for the writes that may be under way at once.
	writing chan struct{}
}

func newWorkers() workers {
	return workers{launch: func(work func()) { go work() }, await: func(int) {}, fork: sideBySide, writing: make(chan struct{}, maxWriters)}
}

// each does something for 0 to n-1, up to maxWriters at a time, and returns once nothing is under way. After one for which do returns
// false no other is begun; each says whether there was none. A panic counts as one, and is handed to panicked.
func (w workers) each(n int, do func(i int) (goOn bool), panicked func(i int, p any)) bool {
	var begun atomic.Int64
	var stopped atomic.Bool
	one := func(i int) (goOn bool) {
		defer func() {
			if p := recover(); p != nil {
				panicked(i, p)
			}
		}()
		return do(i)
	}
	if n == 1 { // a single claim
		return one(0)
	}
	w.fork(min(n, maxWriters), func() {
		for !stopped.Load() {
			i := int(begun.Add(1)) - 1
			if i >= n {
				return
			}
			if !one(i) {
				stopped.Store(true)
			}
		}
	})
	return !stopped.Load()
}

// sideBySide has so many workers do the same work, and returns once all are done.
func sideBySide(workers int, work func()) {
	var all sync.WaitGroup
	for range workers {
		all.Go(work)
	}
	all.Wait()
}
