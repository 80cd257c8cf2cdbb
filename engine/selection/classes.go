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
	known  []map[string]uint32
	buffer []byte
}

// place is where a candidate belongs: a number for each factor. It is immutable.
type place struct {
	among *places
	n     int
	few   [mostFactors]uint32
	// many is used instead of few where there are more.
	many []uint32
}

func (p *place) numbers() []uint32 {
	if p.many != nil {
		return p.many
	}
	return p.few[:p.n]
}

func newPlaces(factors []*regonative.Factor) *places {
	p := &places{factors: factors, known: make([]map[string]uint32, len(factors))}
	for i := range p.known {
		p.known[i] = map[string]uint32{}
	}
	return p
}

// of is where a candidate belongs. It is found out once.
func (p *places) of(candidate *PreparedCandidate) []uint32 {
	if at := candidate.place.Load(); at != nil && at.among == p {
		return at.numbers()
	}
	return p.find(candidate)
}

func (p *places) find(candidate *PreparedCandidate) []uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	in, at := &subject{candidate: &candidate.facts}, &place{among: p, n: len(p.factors)}
	if at.n > mostFactors {
		at.many = make([]uint32, at.n)
	}
	numbers := at.numbers()
	for i, factor := range p.factors {
		p.buffer = factor.Reads.AppendKey(p.buffer[:0], in)
		n, ok := p.known[i][string(p.buffer)]
		if !ok {
			n = uint32(len(p.known[i]))
			p.known[i][string(p.buffer)] = n
		}
		numbers[i] = n
	}
	candidate.place.Store(at)
	return numbers
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

// class names what all factors of the rules answer. Candidates of one class are judged alike.
type class [mostFactors / 4]uint64

const (
	// mostFactors is how many factors a class can name, each by a number below mostAnswers.
	mostFactors = 16
	mostAnswers = 1 << 16
)

// verdicts is a table from classes to verdicts, with open addressing. It is emptied by counting series on.
type verdicts struct {
	series uint64
	slots  []slot
	used   int
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
	v.used = 0
	if v.slots == nil {
		v.slots = make([]slot, firstVerdicts)
	}
}

// at returns the slot of a class, or the free one that it may take. There is always one that is free.
func (v *verdicts) at(c class) *slot {
	hash := c[0]
	for _, more := range c[1:] {
		hash = (hash ^ more) * 0x9e3779b97f4a7c15
	}
	hash *= 0xd6e8feb86659fd93
	mask := uint64(len(v.slots) - 1)
	for i := hash >> 32; ; i++ {
		if s := &v.slots[i&mask]; s.series != v.series || s.class == c {
			return s
		}
	}
}

// put fills a slot that at has returned. A table that is half full grows, or else keeps no more.
func (v *verdicts) put(s *slot, c class, judged verdict) {
	if 2*v.used >= len(v.slots) {
		if len(v.slots) >= mostVerdicts {
			return
		}
		old := v.slots
		v.slots = make([]slot, 2*len(old))
		for _, o := range old {
			if o.series == v.series {
				*v.at(o.class) = o
			}
		}
		s = v.at(c)
	}
	v.used++
	*s = slot{v.series, c, judged}
}
