// SPDX-License-Identifier: Apache-2.0

package regonative

import "math"

// Factor is a part of what the rules come to: a rule, or some fields that are read without one. The place of an input says
// what the factor reads of it: inputs of the same place agree in these fields. What the rules come to depends on nothing but
// the answers of the factors, of which there are mostly few, also where hardly two inputs agree in all fields.
type Factor struct {
	// Reads are the fields that vary. Inputs for which AppendKey is the same have the same place.
	Reads Fields
	// rule is nil for fields.
	rule *rule
}

const (
	// Beyond is the place of an input that has none of its own.
	Beyond = math.MaxUint16
	// mostPlaces bounds the table of a factor. An input whose place is beyond is evaluated for itself.
	mostPlaces = 1 << 14
	// coarse is the number of fields above which a rule is taken apart into those that it uses.
	coarse = 3
)

// factorise finds the factors of what was asked for.
func (t *Translator) factorise() {
	fields := t.asked.own.Of(Varies)
	seen := map[*translated]bool{}
	var visit func([]*translated)
	visit = func(rules []*translated) {
		for _, r := range rules {
			reads := r.all.Of(Varies)
			if seen[r] || len(reads) == 0 {
				continue
			}
			seen[r] = true
			if len(reads) > coarse && len(r.rules) > 0 {
				fields = fields.With(r.own.Of(Varies)...)
				visit(r.rules)
				continue
			}
			r.rule.unit = len(t.program.Factors)
			t.program.Factors = append(t.program.Factors, &Factor{reads, r.rule})
		}
	}
	visit(t.asked.rules)
	if len(fields) > 0 {
		t.program.Factors = append(t.program.Factors, &Factor{Reads: fields})
	}
}

// Class names what the factors answer: the rules say the same of two inputs that are of one class within a series.
type Class [mostWords]uint64

const (
	// mostFactors is how many factors a Class can name, each by a number of 16 bits, and mostWords what they take.
	mostFactors = 16
	mostWords   = mostFactors / 4
)

// said is what a factor says of a place, in short. The zero value says that the factor was not asked.
type said struct {
	// class is its part of a Class.
	class uint64
	known bool
}

// Class is the class of the input, which the next call overwrites. A factor that was not asked about its place yet looks at the
// input, for which ready is called before. Class returns nil if the input can only be evaluated for itself.
func (f *Frame) Class(places []uint16, ready func()) *Class {
	if len(places) > mostFactors {
		return nil
	}
	if f.look(places) {
		return &f.class
	}
	for factor, place := range places {
		if of := f.said[factor]; int(place) < len(of) && of[place].known {
			continue
		}
		ready()
		if !f.ask(factor, place) {
			return nil
		}
	}
	f.look(places)
	return &f.class
}

// look puts together what was said of places. It says no if a factor was not asked yet.
func (f *Frame) look(places []uint16) (complete bool) {
	clear(f.class[:])
	all := f.said[:len(places)]
	for factor, place := range places {
		of := all[factor]
		if int(place) >= len(of) || !of[place].known {
			return false
		}
		f.class[uint(factor)/4%mostWords] |= of[place].class
	}
	return true
}

// known is the answer that a factor has given for a place in this series, or nil.
func (f *Frame) known(factor int, place uint16) *answer {
	if table := f.tables[factor]; int(place) < len(table) && table[place].stamp == f.series {
		return &table[place]
	}
	return nil
}

// ask evaluates the rule of a factor for the input, which is at the place. It returns false where it cannot tell.
func (f *Frame) ask(factor int, place uint16) bool {
	rule := f.program.Factors[factor].rule
	if place == Beyond || rule != nil && place >= mostPlaces {
		return false
	}
	if rule == nil {
		f.say(factor, place, uint32(place))
		return true
	}
	v, defined := rule.eval(f)
	if f.GaveUp {
		return false
	}
	for int(place) >= len(f.tables[factor]) {
		f.tables[factor] = append(f.tables[factor], make([]answer, max(16, len(f.tables[factor])))...)
	}
	f.tables[factor][place] = answer{f.series, defined, v}
	f.key = f.key[:0]
	if defined {
		f.key = v.AppendKey(f.key)
	}
	id, ok := f.distinct[factor][string(f.key)]
	if !ok {
		id = uint32(len(f.distinct[factor]))
		f.distinct[factor][string(f.key)] = id
	}
	f.say(factor, place, id)
	return true
}

// say notes the number of a factor's answer for a place.
func (f *Frame) say(factor int, place uint16, id uint32) {
	for int(place) >= len(f.said[factor]) {
		f.said[factor] = append(f.said[factor], make([]said, max(16, len(f.said[factor])))...)
	}
	f.said[factor][place] = said{uint64(id) << (factor % 4 * 16), true}
}
