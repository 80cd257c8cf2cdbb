// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gate stops every worker ahead of every write, so that a test decides which one goes on, what becomes of its write, and what
// else happens meanwhile. Only one goroutine runs at a time, so that a run can be repeated.
type gate struct {
	// choose picks one of so many workers that wait; fault is what becomes of a write; meanwhile is what else happens before it.
	choose    func(n int) int
	fault     func(o client.Object) fault
	meanwhile func()

	asks    chan *ask
	ends    chan struct{}
	forks   chan *forked
	joins   chan *forked
	running atomic.Int64
	ended   int
	waiting []*ask
	// most is how many workers were at work at once; side is how many of them a gang may have, 0 for as many as it asks for.
	most, side int
	// dead says that the manager is gone: nothing that it writes arrives any more.
	dead bool
}

// ask is a write that a worker wants to make.
type ask struct {
	object client.Object
	grant  chan fault
}

// forked is a worker that waits for others which it has do its work.
type forked struct {
	left int
	done chan struct{}
}

// name orders what waits, whichever worker came first.
func (a *ask) name() string { return fmt.Sprintf("%T %s", a.object, a.object.GetName()) }

// fault is what goes wrong with a write: before it is made, or with its answer.
type fault struct{ before, after error }

func newGate() *gate {
	return &gate{choose: func(int) int { return 0 }, fault: func(client.Object) fault { return fault{} }, meanwhile: func() {},
		asks: make(chan *ask), ends: make(chan struct{}), forks: make(chan *forked), joins: make(chan *forked)}
}

// launch begins a worker, and returns once it waits at the gate or is done.
func (g *gate) launch(work func()) {
	g.running.Add(1)
	go func() {
		work()
		g.ends <- struct{}{}
	}()
	g.rest()
}

// fork begins so many workers, and returns once all are done. Where the loop itself does the work, it does so alone.
func (g *gate) fork(workers int, work func()) {
	if g.running.Load() == 0 || workers == 0 {
		work()
		return
	}
	if g.side > 0 {
		workers = min(workers, g.side)
	}
	f := &forked{workers, make(chan struct{})}
	g.forks <- f
	for range workers {
		go func() {
			work()
			g.joins <- f
		}()
	}
	<-f.done
}

// rest returns once no worker runs.
func (g *gate) rest() {
	for g.running.Load() > 0 {
		select {
		case a := <-g.asks:
			g.waiting = append(g.waiting, a)
		case <-g.ends:
			g.ended++
		case f := <-g.forks:
			g.running.Add(int64(f.left))
		case f := <-g.joins:
			if f.left--; f.left == 0 { // who waited for it runs again
				g.running.Add(1)
				close(f.done)
			}
		}
		g.running.Add(-1)
	}
	g.most = max(g.most, len(g.waiting))
}

// await lets one worker after the other make a write, until one is done.
func (g *gate) await(int) {
	for g.ended == 0 {
		g.meanwhile()
		slices.SortFunc(g.waiting, func(a, b *ask) int { return strings.Compare(a.name(), b.name()) })
		i := g.choose(len(g.waiting))
		a := g.waiting[i]
		g.waiting = slices.Delete(g.waiting, i, i+1)
		g.running.Add(1)
		a.grant <- g.fault(a.object)
		g.rest()
	}
	g.ended--
}

// enter waits until the write may be made.
func (g *gate) enter(o client.Object) fault {
	if g.running.Load() == 0 { // it is the loop itself that writes
		return g.fault(o)
	}
	a := &ask{o, make(chan fault)}
	g.asks <- a
	return <-a.grant
}

func (g *gate) crashed() bool { return g.dead }

// drawnFrom has what happens at the gate drawn at random.
func (g *gate) drawnFrom(t *rapid.T) {
	// In some runs most writes meet trouble, in others few: what takes many writes would never be done in the one, and little of
	// interest would happen in the other.
	well := slices.Repeat([]string{""}, rapid.SampledFrom([]int{4, 20, 60}).Draw(t, "writes that go well"))
	kinds := rapid.SampledFrom(slices.Concat(well, []string{"conflict", "refused", "denied", "lost", "crash before", "crash after"}))
	g.choose = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "worker") }
	g.dead, g.side = false, rapid.IntRange(1, 4).Draw(t, "writes of a gang side by side")
	dead := errors.New("injected: this manager is gone")
	g.fault = func(o client.Object) fault {
		if g.dead {
			return fault{before: dead}
		}
		switch kinds.Draw(t, "write "+o.GetName()) {
		case "conflict":
			return fault{before: apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("injected"))}
		case "refused":
			return fault{before: apierrors.NewServiceUnavailable("injected")}
		case "denied":
			return fault{before: apierrors.NewForbidden(schema.GroupResource{}, o.GetName(), errors.New("injected"))}
		case "lost":
			return fault{after: errors.New("injected: the answer got lost")}
		case "crash before":
			g.dead = true
			return fault{before: dead}
		case "crash after":
			g.dead = true
			return fault{after: dead}
		}
		return fault{}
	}
}
