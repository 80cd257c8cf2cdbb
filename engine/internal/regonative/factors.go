// SPDX-License-Identifier: Apache-2.0

package regonative

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

// Answered returns a number that is the same for places of which the factor has the same answer, within a series; ok is
// false where the answer of the place is not known yet.
func (f *Frame) Answered(factor int, place uint32) (id uint32, ok bool) {
	ids := f.ids[factor]
	if int(place) < len(ids) {
		return ids[place] - 1, ids[place] != 0
	}
	return place, f.program.Factors[factor].rule == nil
}

// known is the answer that a factor has given for a place in this series, or nil.
func (f *Frame) known(factor int, place uint32) *answer {
	if table := f.tables[factor]; int(place) < len(table) && table[place].stamp == f.series {
		return &table[place]
	}
	return nil
}

// Answer evaluates the rule of a factor for the input, which is at the place. It returns false where it cannot tell.
func (f *Frame) Answer(factor int, place uint32) bool {
	if place >= mostPlaces {
		return false
	}
	v, defined := f.program.Factors[factor].rule.eval(f)
	if f.GaveUp {
		return false
	}
	for int(place) >= len(f.tables[factor]) {
		more := max(16, len(f.tables[factor]))
		f.tables[factor] = append(f.tables[factor], make([]answer, more)...)
		f.ids[factor] = append(f.ids[factor], make([]uint32, more)...)
	}
	f.key = f.key[:0]
	if defined {
		f.key = v.AppendKey(f.key)
	}
	id, ok := f.distinct[factor][string(f.key)]
	if !ok {
		id = uint32(len(f.distinct[factor])) + 1
		f.distinct[factor][string(f.key)] = id
	}
	f.tables[factor][place], f.ids[factor][place] = answer{f.series, defined, v}, id
	return true
}
