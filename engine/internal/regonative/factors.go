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

// factorise finds the factors of what was asked for: first those that tell inputs apart, and then those that only a sum reads.
func (t *Translator) factorise() {
	flat := (*linear)(nil)
	if t.summed != nil {
		if flat = t.summed.summands(); flat == nil {
			t.asked.as(t.summed.uses)
		}
	}
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
			t.factor(r, reads)
		}
	}
	visit(t.asked.rules)
	if len(fields) > 0 {
		t.program.Factors = append(t.program.Factors, &Factor{Reads: fields})
	}
	t.program.telling = len(t.program.Factors)
	if flat != nil {
		t.program.Sum = t.add(flat)
	}
}

// factor makes a rule a factor.
func (t *Translator) factor(r *translated, reads Fields) {
	r.rule.unit = len(t.program.Factors)
	t.program.Factors = append(t.program.Factors, &Factor{reads, r.rule})
}

// add makes the rules of a sum factors, where they are none.
func (t *Translator) add(flat *linear) *Sum {
	rules := flat.inOrder()
	for _, r := range rules {
		if r.rule.unit < 0 {
			t.factor(r, r.all.Of(Varies))
		}
	}
	sum := &Sum{constant: flat.constant, weights: make([]weight, len(t.program.Factors))}
	for _, r := range rules {
		sum.weights[r.rule.unit] = weight{flat.times[r], true}
	}
	return sum
}

// Class names what the factors answer that tell inputs apart: two inputs of one class are of one within a series, and what the rules
// say of them is the same.
type Class [mostWords]uint64

const (
	// mostTelling is how many factors a Class can name, each by a number of 16 bits, and mostWords what they take.
	mostTelling = 16
	mostWords   = mostTelling / 4
)

// said is what a factor says of a place, in short. The zero value says that nobody asked.
type said struct {
	// class is its part of a Class, and n what it adds to the sum.
	class uint64
	n     int64
	marks marks
}

// Class is the class of the input, and what its factors add up to. The class is overwritten by the next call. A factor that was not
// asked about its place yet looks at the input, for which ready is called before. It returns nil where the input can only be evaluated
// for itself.
func (f *Frame) Class(places []uint16, ready func()) (*Class, Total) {
	if f.program.telling > mostTelling {
		return nil, Total{}
	}
	c, total, complete := f.look(places)
	if complete {
		return c, total
	}
	for factor, place := range places {
		if of := f.said[factor]; int(place) < len(of) && of[place].marks != 0 {
			continue
		}
		ready()
		if !f.ask(factor, place) {
			return nil, Total{}
		}
	}
	c, total, _ = f.look(places)
	return c, total
}

// look puts together what was said of places; complete is false where a factor was not asked yet.
func (f *Frame) look(places []uint16) (c *Class, total Total, complete bool) {
	c, total.marks = &f.class, isAll
	clear(c[:])
	all, telling := f.said[:len(places)], f.program.telling
	for factor, place := range places {
		of := all[factor]
		if int(place) >= len(of) {
			return nil, total, false
		}
		says := &of[place]
		if factor < telling {
			c[uint(factor)/4%mostWords] |= says.class
		}
		total.n += says.n
		total.marks &= says.marks
	}
	return c, total, total.marks != 0
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
		f.say(factor, place, said{class: f.program.part(factor, uint32(place)), marks: isAll})
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
	n, marks := f.program.Sum.part(factor, v, defined)
	f.say(factor, place, said{f.program.part(factor, id), n, marks})
	return true
}

func (f *Frame) say(factor int, place uint16, what said) {
	for int(place) >= len(f.said[factor]) {
		f.said[factor] = append(f.said[factor], make([]said, max(16, len(f.said[factor])))...)
	}
	f.said[factor][place] = what
}

// part is the part of a Class that a factor makes up.
func (p *Program) part(factor int, id uint32) uint64 {
	if factor >= p.telling {
		return 0
	}
	return uint64(id) << (factor % 4 * 16)
}
