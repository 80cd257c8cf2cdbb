// SPDX-License-Identifier: Apache-2.0

package regonative

// mostTurns bounds the turns of all loops in one evaluation.
const mostTurns = 4096

// Frame is what evaluations work on, one after the other. It is for one goroutine at a time.
type Frame struct {
	// In is the input, as the Source of the program reads it.
	In any
	// GaveUp says that the evaluation cannot tell, and that the interpreter has to be asked.
	GaveUp bool
	locals []Value
	rules  []answer
	// stamp is that of the current evaluation, and series that of what holds for all of them. Answers with another stamp
	// are old.
	stamp, series uint64
	turns         int

	program *Program
	// places are those of the input, by Factor, and tables the answers of the factors by place. An input without places is
	// evaluated for itself.
	places []uint16
	tables [][]answer
	// said is what stands in tables, in short, and distinct numbers the answers that differ.
	said     [][]said
	distinct []map[string]uint32
	key      []byte
	class    Class
}

// answer is what a rule came to.
type answer struct {
	stamp   uint64
	defined bool
	value   Value
}

// NewFrame makes a frame for the evaluations of a program.
func (p *Program) NewFrame() *Frame {
	f := &Frame{program: p, locals: make([]Value, p.locals), rules: make([]answer, p.rules), tables: make([][]answer, len(p.Factors)),
		said: make([][]said, len(p.Factors))}
	for range p.Factors {
		f.distinct = append(f.distinct, map[string]uint32{})
	}
	return f
}

// Begin starts a series of evaluations in which only fields that vary change.
func (f *Frame) Begin() {
	f.stamp++
	f.series = f.stamp
	for i, factor := range f.program.Factors {
		if factor.rule != nil { // what is read without one is the same in each series
			clear(f.said[i])
			clear(f.distinct[i])
		}
	}
}

// Next starts an evaluation. Places are those of the input by Factor; nil where they are not known.
func (f *Frame) Next(places []uint16) {
	f.stamp++
	f.GaveUp, f.turns, f.places = false, 0, places
}

// Release drops the input, so that a frame which is kept does not hold on to it.
func (f *Frame) Release() {
	f.In, f.places = nil, nil
	clear(f.locals)
}

// eval is the value of an expression; ok is false where it is undefined.
type eval func(*Frame) (v Value, ok bool)

// step is one expression of a body: it holds or not, or it has many solutions.
type step struct {
	holds func(*Frame) bool
	each  func(f *Frame, solution func())
}

// body is a conjunction.
type body struct {
	steps []step
	loops bool
}

// holds is for bodies without loops.
func (b *body) holds(f *Frame) bool {
	for i := range b.steps {
		if !b.steps[i].holds(f) {
			return false
		}
	}
	return true
}

// solve calls solution for each way in which the expressions from one on hold together.
func (b *body) solve(f *Frame, from int, solution func()) {
	for i := from; i < len(b.steps); i++ {
		if s := b.steps[i]; s.each != nil {
			s.each(f, func() {
				f.turns++
				if f.turns > mostTurns {
					f.GaveUp = true
				}
				if !f.GaveUp {
					b.solve(f, i+1, solution)
				}
			})
			return
		}
		if !b.steps[i].holds(f) {
			return
		}
	}
	solution()
}

// any says whether there is a solution.
func (b *body) any(f *Frame) (holds bool) {
	b.solve(f, 0, func() { holds = true })
	return holds
}

// clause is one rule with its else branches.
type clause struct {
	body  body
	value eval
	next  *clause
}

// eval takes the first branch whose body holds.
func (c *clause) eval(f *Frame) (Value, bool) {
	for ; c != nil; c = c.next {
		if c.body.loops {
			if v, ok := c.collect(f); ok {
				return v, true
			}
			continue
		}
		if c.body.holds(f) {
			return c.value(f)
		}
	}
	return Value{}, false
}

// collect is the value of a branch that has many solutions. Two of them with two values are an error, whose words the
// interpreter has.
func (c *clause) collect(f *Frame) (result Value, found bool) {
	c.body.solve(f, 0, func() {
		v, ok := c.value(f)
		if found && ok && !equal(v, result) {
			f.GaveUp = true
		}
		if ok {
			result, found = v, true
		}
	})
	return result, found
}

// clauses are all rules of one name.
type clauses struct {
	all      []*clause
	fallback eval
}

func (c *clauses) eval(f *Frame) (result Value, found bool) {
	for _, one := range c.all {
		v, ok := one.eval(f)
		if !ok {
			continue
		}
		if found && !equal(v, result) {
			f.GaveUp = true
		}
		result, found = v, true
	}
	if !found && c.fallback != nil {
		return c.fallback(f)
	}
	return result, found
}

// rule is a rule without arguments. It is evaluated once in an evaluation.
type rule struct {
	clauses
	number int
	// unit is the number of the Factor that it is, or -1; fixed: it reads nothing that varies.
	unit  int
	fixed bool
}

func (r *rule) eval(f *Frame) (Value, bool) {
	at, stamp := &f.rules[r.number], f.stamp
	switch {
	case r.fixed:
		stamp = f.series
	case r.unit >= 0 && f.places != nil:
		if known := f.known(r.unit, f.places[r.unit]); known != nil {
			return known.value, known.defined
		}
	}
	if at.stamp == stamp {
		return at.value, at.defined
	}
	v, ok := r.clauses.eval(f)
	if !f.GaveUp {
		at.stamp, at.defined, at.value = stamp, ok, v
	}
	return v, ok
}
