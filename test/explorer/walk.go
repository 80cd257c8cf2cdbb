// SPDX-License-Identifier: Apache-2.0

package explorer

import "math/rand/v2"

// walks plays random histories, which go deeper than the search does.
func (x *exploration) walks() {
	random := rand.New(rand.NewPCG(x.options.Seed, x.options.Seed))
	seeds := x.m.seeds()
	for range x.options.Walks {
		if x.options.First && len(x.found) > 0 {
			return
		}
		x.walk(random, seeds[random.IntN(len(seeds))])
	}
}

func (x *exploration) walk(random *rand.Rand, s seed) {
	w := s.world
	way := make([]*event, 0, x.options.Steps)
	for range x.options.Steps {
		x.steps++
		if !x.settle(&w) {
			x.judgeLoop(x.moves)
		}
		if len(x.broken) > 0 {
			x.noteWalk(s, way)
			return
		}
		e := x.happen(random, &w)
		if e != nil {
			way = append(way, e)
		}
		if len(x.broken) > 0 {
			x.noteWalk(s, way)
			return
		}
	}
}

// happen lets one event happen; every second time one of those that happen every day, so that walks get somewhere.
func (x *exploration) happen(random *rand.Rand, w *World) *event {
	routine := random.IntN(2) == 0
	for range 4 * len(events) {
		e := &events[random.IntN(len(events))]
		if routine && !e.routine {
			routine = random.IntN(8) > 0
			continue
		}
		if e.do(&x.player, w) {
			return e
		}
	}
	return nil
}

// noteWalk takes what a walk broke into the findings, without the events that do not matter for it.
func (x *exploration) noteWalk(s seed, way []*event) {
	broken := append([]breach(nil), x.broken...)
	x.broken = x.broken[:0]
	for _, b := range broken {
		if _, before := x.found[b.rule]; before {
			continue
		}
		for i := len(way) - 1; i >= 0; i-- {
			if shorter := append(append([]*event(nil), way[:i]...), way[i+1:]...); x.m.replay(s, shorter, nil) == b.rule {
				way = shorter
			}
		}
		var h History
		x.m.replay(s, way, &h)
		x.found[b.rule] = Violation{Rule: b.rule, Text: b.text, History: h}
		x.order = append(x.order, b.rule)
	}
}

// replay plays events and settles after each. It returns the first rule that is broken; none where an event cannot happen.
func (m *Machine) replay(s seed, way []*event, h *History) Rule {
	t := m.newTeller(s)
	defer func() {
		if h != nil {
			*h = t.History
		}
	}()
	for i := 0; ; i++ {
		if !t.settle(&t.w) {
			t.judgeLoop(t.moves)
		}
		if len(t.broken) > 0 {
			return t.broken[0].rule
		}
		if i == len(way) || !t.happens(way[i]) {
			return ""
		}
		if len(t.broken) > 0 {
			return t.broken[0].rule
		}
	}
}
