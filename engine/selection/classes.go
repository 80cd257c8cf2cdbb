// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"sync"

	"github.com/metalaw/metalaw/engine/internal/regonative"
)

// mostPlaces is how many places are remembered before a new generation begins.
const mostPlaces = 1 << 16

// places numbers the candidates that a factor of the rules can tell apart, for each factor.
type places struct {
	factors []*regonative.Factor

	mu     sync.Mutex
	known  []map[string]uint16
	buffer []byte
}

// fewFactors is how many numbers a place has room for in itself.
const fewFactors = 16

// place is where a candidate belongs: a number for each factor. It is immutable, and as long as a line of a processor's cache, of
// which each look at a candidate takes one.
type place struct {
	among   *places
	numbers []uint16
	// few holds the numbers, where they fit.
	few [fewFactors]uint16
}

func newPlaces(factors []*regonative.Factor) *places {
	p := &places{factors: factors, known: make([]map[string]uint16, len(factors))}
	for i := range p.known {
		p.known[i] = map[string]uint16{}
	}
	return p
}

// of is where a candidate belongs. It is found out once.
func (p *places) of(candidate *PreparedCandidate) []uint16 {
	if at := candidate.place.Load(); at != nil && at.among == p {
		return at.numbers
	}
	return p.find(candidate)
}

func (p *places) find(candidate *PreparedCandidate) []uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	in, at := &subject{candidate: &candidate.facts}, &place{among: p}
	if at.numbers = at.few[:min(len(p.factors), fewFactors)]; len(p.factors) > fewFactors {
		at.numbers = make([]uint16, len(p.factors))
	}
	for i, factor := range p.factors {
		p.buffer = factor.Reads.AppendKey(p.buffer[:0], in)
		n, ok := p.known[i][string(p.buffer)]
		if !ok {
			n = uint16(min(len(p.known[i]), regonative.Beyond))
			p.known[i][string(p.buffer)] = n
		}
		at.numbers[i] = n
	}
	candidate.place.Store(at)
	return at.numbers
}

// full says that so many places were seen that they should be counted anew: those of servers that are gone add up.
func (p *places) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.known {
		if len(known) > mostPlaces {
			return true
		}
	}
	return false
}

// class is what candidates have in common that are judged alike.
type class = regonative.Class

// verdicts is a table from classes to verdicts, with open addressing. It is emptied by counting series on.
type verdicts struct {
	series uint64
	slots  []slot
	used   int
	// last is the slot that was asked for last, and other the one for which there was no room.
	last  *slot
	other slot
}

type slot struct {
	series uint64
	class  class
	verdict
}

const (
	// firstVerdicts and mostVerdicts bound the size of the table. It is kept for the next claim.
	firstVerdicts = 1 << 8
	mostVerdicts  = 1 << 14
)

func (v *verdicts) empty() {
	v.series++
	v.used, v.last = 0, nil
	if v.slots == nil {
		v.slots = make([]slot, firstVerdicts)
	}
}

// at returns the slot of a class, or the free one that it may take. There is always one that is free.
func (v *verdicts) at(c *class) *slot {
	if v.last != nil && v.last.class == *c {
		return v.last // most candidates are like the one before
	}
	hash := c[0]
	for _, more := range c[1:] {
		hash = (hash ^ more) * 0x9e3779b97f4a7c15
	}
	hash *= 0xd6e8feb86659fd93
	mask := uint64(len(v.slots) - 1)
	for i := hash >> 32; ; i++ {
		s := &v.slots[i&mask]
		if s.series != v.series {
			return s
		}
		if s.class == *c {
			v.last = s
			return s
		}
	}
}

// put fills a slot that at has returned, and returns it. A table that is half full grows, or else keeps no more than one other.
func (v *verdicts) put(s *slot, c *class, judged verdict) *slot {
	if 2*v.used >= len(v.slots) {
		if len(v.slots) >= mostVerdicts {
			v.other = slot{class: *c, verdict: judged}
			return &v.other
		}
		old := v.slots
		v.slots, v.last = make([]slot, 2*len(old)), nil
		for i := range old {
			if old[i].series == v.series {
				*v.at(&old[i].class) = old[i]
			}
		}
		s = v.at(c)
	}
	v.used++
	*s = slot{v.series, *c, judged}
	return s
}
