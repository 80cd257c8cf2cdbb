// SPDX-License-Identifier: Apache-2.0

package explorer

// Options bound an exploration.
type Options struct {
	// Worlds is how many worlds are visited at most, and Disturbances how many events out of the ordinary a history has at
	// most.
	Worlds, Disturbances int
	// Walks is how many random histories are played besides, each of Steps events, from Seed on.
	Walks, Steps int
	Seed         uint64
	// First ends the exploration with the first violation.
	First bool
}

// Quick is enough to find what a mistake of one line breaks.
var Quick = Options{Worlds: 150_000, Disturbances: 3, Walks: 300, Steps: 80, Seed: 1}

// Thorough is for a bundle that many rely on.
var Thorough = Options{Worlds: 2_000_000, Disturbances: 5, Walks: 5000, Steps: 120, Seed: 1}

// Result is what an exploration found: for each rule that was broken the shortest history that was met.
type Result struct {
	Violations []Violation
	// Worlds and Steps say how far it went; Complete that no world was left out for want of room, up to as many disturbances
	// as were allowed.
	Worlds, Steps int
	Complete      bool
	// States are those that were entered.
	States map[string]bool

	worlds []World
}

// Broke says whether a rule was broken.
func (r Result) Broke(rule Rule) bool {
	for _, v := range r.Violations {
		if v.Rule == rule {
			return true
		}
	}
	return false
}

// Explore plays a lifecycle exhaustively as far as the options allow, those histories first in which little out of the
// ordinary happens, and then at random.
func (m *Machine) Explore(o Options) Result {
	x := &exploration{player: player{m: m}, options: o, seen: map[World]int32{}, found: map[Rule]Violation{}}
	for i, s := range m.seeds() {
		x.reach(s.world, node{parent: -1, by: int16(i)}, 0)
	}
	for x.level = 0; x.level <= o.Disturbances && !x.full(); x.level++ {
		for i := 0; i < len(x.queues[x.level]) && !x.full(); i++ {
			if at := x.queues[x.level][i]; int(x.nodes[at].level) == x.level {
				x.expand(at)
			}
		}
		x.queues[x.level] = nil
	}
	complete := !x.full()
	x.walks()
	return x.result(complete)
}

// exploration is one search in progress.
type exploration struct {
	player
	options Options
	nodes   []node
	worlds  []World
	next    World // the one at work; of a variable each would cost an allocation
	seen    map[World]int32
	queues  [16][]int32 // by disturbances
	level   int
	chain   []int // how many moves there were before each world of the chain of visits at work
	steps   int
	found   map[Rule]Violation
	order   []Rule
}

// node says how a world was reached first: by an event, by a visit, or as a seed where there is no parent.
type node struct {
	parent int32
	by     int16
	level  uint8 // how many disturbances lead here
}

// byVisit is node.by for what the lifecycle did.
const byVisit = -1

func (x *exploration) full() bool {
	return len(x.nodes) >= x.options.Worlds || (x.options.First && len(x.found) > 0)
}

// expand plays everything that may happen in a world.
func (x *exploration) expand(at int32) {
	for i := range events {
		x.next = x.worlds[at]
		level := x.level
		if !events[i].routine {
			level++
		}
		if level > x.options.Disturbances || !events[i].do(&x.player, &x.next) {
			continue
		}
		x.steps++
		n := node{parent: at, by: int16(i)}
		if x.note(n) {
			continue
		}
		x.reach(x.next, n, level)
	}
}

// reach adds a world, and those to which visits lead from it. Events may happen in each of them.
func (x *exploration) reach(w World, n node, level int) {
	first := int32(len(x.nodes))
	x.moves = 0
	x.chain = x.chain[:0]
	for {
		at, known := x.seen[w]
		switch {
		case known && at >= first:
			x.judgeLoop(x.moves - x.chain[at-first])
			x.note(n)
			return
		case known && int(x.nodes[at].level) <= level:
			return
		case known: // a history with fewer disturbances leads here as well; what comes of it is still to be played
			n.level = uint8(level)
			x.nodes[at] = n
		default:
			at = int32(len(x.nodes))
			x.seen[w] = at
			n.level = uint8(level)
			x.nodes, x.worlds = append(x.nodes, n), append(x.worlds, w)
			x.chain = append(x.chain, x.moves)
		}
		x.queues[level] = append(x.queues[level], at)
		x.next = w
		x.steps++
		went := x.visit(&x.next)
		if x.note(node{parent: at, by: byVisit}) {
			return
		}
		if !went {
			next := x.next
			x.judgeRest(at)
			if x.next = next; next == w {
				return
			}
		}
		w, n = x.next, node{parent: at, by: byVisit}
	}
}

// judgeLoop judges that visits lead back to where they came from, after so many moves.
func (p *player) judgeLoop(moves int) {
	if moves > 0 {
		p.breaks(Spin, "moves go on for ever, while nothing happens")
	} else {
		p.breaks(Quarrel, "effects of one state undo each other for ever")
	}
}

// judgeRest judges a world in which nothing changes without an event: with time alone its server must come to rest.
func (x *exploration) judgeRest(at int32) {
	for _, prepared := range [...]bool{false, true} {
		w := x.worlds[at]
		if rule, text := x.rests(&w, prepared); rule != "" {
			x.breaks(rule, text)
			x.note(node{parent: at, by: byVisit})
			return
		}
	}
}

// maxWaits is more deadlines than any server passes until it rests.
const maxWaits = 64

// rests lets time pass, and nothing else, but that boots are prepared where that is asked for. What breaks another rule on
// the way is for the search to find.
func (x *exploration) rests(w *World, prepared bool) (Rule, string) {
	if x.m.states[w.State].stable {
		return "", ""
	}
	p := player{m: x.m}
	for range maxWaits {
		if x.m.states[w.State].stable || !w.reached() || p.m.isLost(w) || p.m.decide(w, nil).halted {
			return "", ""
		}
		w.BootReady = w.BootReady || (prepared && w.Boot != Nothing)
		if !p.settle(w) {
			return "", "" // the search finds it
		}
		if x.m.states[w.State].stable {
			return "", ""
		}
		if !x.m.wait(w) {
			return NoDeadline, "nothing leads out of " + x.m.states[w.State].name + ", however long it lasts"
		}
		if !p.settle(w) {
			return "", ""
		}
		p.broken = p.broken[:0]
	}
	return NeverRests, "deadlines lead from state to state, and never to one in which a server may rest"
}

// note takes what was just broken into the findings, and says whether anything was.
func (x *exploration) note(n node) bool {
	if len(x.broken) == 0 {
		return false
	}
	for _, b := range x.broken {
		if _, before := x.found[b.rule]; !before {
			x.found[b.rule] = Violation{Rule: b.rule, Text: b.text, History: x.history(n)}
			x.order = append(x.order, b.rule)
		}
	}
	x.broken = x.broken[:0]
	return true
}

func (x *exploration) result(complete bool) Result {
	r := Result{Worlds: len(x.nodes), Steps: x.steps, Complete: complete, States: map[string]bool{}, worlds: x.worlds}
	for _, rule := range x.order {
		r.Violations = append(r.Violations, x.found[rule])
	}
	for i := range x.worlds {
		if w := &x.worlds[i]; !w.Lost {
			r.States[x.m.states[w.State].name] = true
		}
	}
	return r
}
