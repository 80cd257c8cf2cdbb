// SPDX-License-Identifier: Apache-2.0

package bdd

// notes holds a number for each node of a function while that is walked through, 0 where it has not been come to. A walk takes
// back its own at the end, so that none costs more than what it has come to.
type notes struct {
	of   []int32
	made []Ref
}

// begin makes room for a number for every node that there is.
func (m *Manager) begin() *notes {
	n := &m.notes
	if len(n.of) < len(m.nodes) {
		n.of = make([]int32, cap(m.nodes))
	}
	return n
}

func (n *notes) set(f Ref, number int32) {
	n.of[f] = number
	n.made = append(n.made, f)
}

func (n *notes) end() {
	for _, f := range n.made {
		n.of[f] = 0
	}
	n.made = n.made[:0]
}

// Fixed gives variables a value. A variable that it does not name is free.
type Fixed map[int]bool

// Restrict is f with some variables fixed.
func (m *Manager) Restrict(f Ref, to Fixed) Ref {
	return m.rewritten(f, greatest(to), func(v int32, lo, hi Ref) Ref {
		switch value, fixed := to[int(v)]; {
		case !fixed:
			return m.make(v, lo, hi)
		case value:
			return hi
		default:
			return lo
		}
	})
}

// Exists holds where some values of the variables make f hold.
func (m *Manager) Exists(f Ref, variables map[int]bool) Ref {
	return m.rewritten(f, greatest(variables), func(v int32, lo, hi Ref) Ref {
		if variables[int(v)] {
			return m.Or(lo, hi)
		}
		return m.make(v, lo, hi)
	})
}

// greatest is the greatest of some variables; less than all where there is none.
func greatest(variables map[int]bool) int32 {
	most := int32(-1)
	for v := range variables {
		most = max(most, int32(v))
	}
	return most
}

// rewritten builds a function anew from the bottom, but for nodes whose variable comes after the last that matters. join makes a
// node's new function from those of its branches, of later variables only, and must walk through none by itself.
func (m *Manager) rewritten(f Ref, last int32, join func(v int32, lo, hi Ref) Ref) Ref {
	n := m.begin()
	defer n.end()
	return m.rewrite(f, last, join)
}

func (m *Manager) rewrite(f Ref, last int32, join func(v int32, lo, hi Ref) Ref) Ref {
	n := m.nodes[f]
	if n.variable > last {
		return f
	}
	if r := m.notes.of[f]; r != 0 {
		return Ref(r - 1)
	}
	r := join(n.variable, m.rewrite(n.lo, last, join), m.rewrite(n.hi, last, join))
	m.notes.set(f, int32(r)+1)
	return r
}

// Variables is a set of variables: those at whose position it is true.
type Variables []bool

// Has says whether a variable is one of them.
func (s Variables) Has(v int) bool { return v >= 0 && v < len(s) && s[v] }

// Support is the variables on which f depends.
func (m *Manager) Support(f Ref) Variables {
	defer m.begin().end()
	support := make(Variables, m.variables)
	m.support(f, support)
	return support
}

func (m *Manager) support(f Ref, to Variables) {
	if f <= True || m.notes.of[f] != 0 {
		return
	}
	m.notes.set(f, 1)
	n := m.nodes[f]
	to[n.variable] = true
	m.support(n.lo, to)
	m.support(n.hi, to)
}

// Holds evaluates f for one assignment; a variable beyond its end is false.
func (m *Manager) Holds(f Ref, assignment []bool) bool {
	for f > True {
		n := m.nodes[f]
		if int(n.variable) < len(assignment) && assignment[n.variable] {
			f = n.hi
		} else {
			f = n.lo
		}
	}
	return f == True
}

// Cheapest returns the values of as many variables as weights has, such that f holds and the weights of those that are true
// come to the least; false where f never holds. Of several the one is taken whose earlier variables are false.
func (m *Manager) Cheapest(f Ref, weights []int) ([]bool, bool) {
	if f == False {
		return nil, false
	}
	defer m.begin().end()
	assignment := make([]bool, len(weights))
	for f > True {
		n := m.nodes[f]
		if m.cost(n.hi, weights)+int32(weights[n.variable]) < m.cost(n.lo, weights) {
			assignment[n.variable] = true
			f = n.hi
		} else {
			f = n.lo
		}
	}
	return assignment, true
}

const never = 1 << 30

func (m *Manager) cost(f Ref, weights []int) int32 {
	switch f {
	case True:
		return 0
	case False:
		return never
	}
	if c := m.notes.of[f]; c != 0 {
		return c - 1
	}
	n := m.nodes[f]
	c := min(m.cost(n.lo, weights), m.cost(n.hi, weights)+int32(weights[n.variable]), never)
	m.notes.set(f, c+1)
	return c
}
