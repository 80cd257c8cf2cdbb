// SPDX-License-Identifier: Apache-2.0

// Package bdd holds reduced ordered binary decision diagrams: boolean functions in a form in which two that are equal are
// the same. A bounded number of nodes keeps a function that has no small form from taking all memory.
package bdd

import "fmt"

// Ref is one boolean function of a Manager.
type Ref int32

const (
	// False is the function that never holds.
	False Ref = 0
	// True is the function that always holds.
	True Ref = 1
)

// node is "if variable then hi else lo". The two constants have a variable that comes after all others.
type node struct {
	variable int32
	lo, hi   Ref
}

const (
	last = 1<<31 - 1
	// stepsPerNode is how much work the limit of nodes allows; ordinary functions need fewer than ten steps for each.
	stepsPerNode = 32
	cacheBits    = 14
)

type triple struct {
	f, g, h, result Ref
}

// Manager owns functions. It is not safe for concurrent use.
type Manager struct {
	nodes []node
	// unique finds nodes by what they are: a table of references, 0 where it is free.
	unique []Ref
	// cache remembers results of Ite; a newer one may take the place of an older.
	cache []triple
	limit int
	// steps counts what Ite could not take from the cache: with many nodes made already, work may grow where nodes do not.
	steps int
	err   error
	// done holds, while a function is rewritten, one more than what has become of each of its nodes; visited are those.
	done    []Ref
	visited []Ref
}

// New makes a Manager of at most limit nodes.
func New(limit int) *Manager {
	m := &Manager{limit: limit, unique: make([]Ref, 1<<12), cache: make([]triple, 1<<cacheBits)}
	m.nodes = append(m.nodes, node{variable: last}, node{variable: last, lo: True, hi: True})
	for i := range m.cache {
		m.cache[i].f = -1
	}
	return m
}

// Err says that the limit was reached. Every function made since then means nothing.
func (m *Manager) Err() error { return m.err }

// Size is the number of nodes made so far.
func (m *Manager) Size() int { return len(m.nodes) }

// Var is the function that holds where the variable does. Variables count from 0; that is their order in the diagram.
func (m *Manager) Var(v int) Ref { return m.make(int32(v), False, True) }

func (m *Manager) make(v int32, lo, hi Ref) Ref {
	if lo == hi {
		return lo
	}
	n := node{v, lo, hi}
	at := m.slot(n)
	if r := m.unique[at]; r != False {
		return r
	}
	if len(m.nodes) >= m.limit {
		if m.err == nil {
			m.err = fmt.Errorf("the conditions have no form of fewer than %d nodes", m.limit)
		}
		return False
	}
	r := Ref(len(m.nodes))
	m.nodes = append(m.nodes, n)
	m.unique[at] = r
	if len(m.nodes) > len(m.unique)/2 {
		m.grow()
	}
	return r
}

// slot is where a node stands in the table, or would.
func (m *Manager) slot(n node) int {
	mask := len(m.unique) - 1
	at := int(hash(uint32(n.variable), uint32(n.lo), uint32(n.hi))) & mask
	for r := m.unique[at]; r != False && m.nodes[r] != n; r = m.unique[at] {
		at = (at + 1) & mask
	}
	return at
}

func (m *Manager) grow() {
	m.unique = make([]Ref, 2*len(m.unique))
	for r := int(True) + 1; r < len(m.nodes); r++ {
		m.unique[m.slot(m.nodes[r])] = Ref(r)
	}
}

func hash(a, b, c uint32) uint32 {
	h := a*0x9E3779B1 ^ b*0x85EBCA6B ^ c*0xC2B2AE35
	h ^= h >> 15
	h *= 0x2C1B3C6D
	return h ^ h>>13
}

// Not is the negation.
func (m *Manager) Not(f Ref) Ref { return m.Ite(f, False, True) }

// And is the conjunction; True of nothing.
func (m *Manager) And(all ...Ref) Ref {
	result := True
	for _, f := range all {
		result = m.Ite(result, f, False)
	}
	return result
}

// Or is the disjunction; False of nothing.
func (m *Manager) Or(all ...Ref) Ref {
	result := False
	for _, f := range all {
		result = m.Ite(result, True, f)
	}
	return result
}

// Without is f where g does not hold.
func (m *Manager) Without(f, g Ref) Ref { return m.Ite(g, False, f) }

// Ite is g where f holds, and h elsewhere.
func (m *Manager) Ite(f, g, h Ref) Ref {
	switch {
	case f == True || g == h:
		return g
	case f == False:
		return h
	case m.err != nil:
		return False
	}
	if g == f {
		g = True
	}
	if h == f {
		h = False
	}
	if g == True && h == False {
		return f
	}
	slot := &m.cache[hash(uint32(f), uint32(g), uint32(h))>>(32-cacheBits)]
	if slot.f == f && slot.g == g && slot.h == h {
		return slot.result
	}
	m.steps++
	if m.steps > m.limit*stepsPerNode {
		m.err = fmt.Errorf("the conditions take more than %d steps to combine", m.limit*stepsPerNode)
		return False
	}
	v := min(m.nodes[f].variable, m.nodes[g].variable, m.nodes[h].variable)
	f0, f1 := m.branches(f, v)
	g0, g1 := m.branches(g, v)
	h0, h1 := m.branches(h, v)
	lo := m.Ite(f0, g0, h0)
	hi := m.Ite(f1, g1, h1)
	result := m.make(v, lo, hi)
	if m.err == nil {
		*slot = triple{f, g, h, result}
	}
	return result
}

func (m *Manager) branches(f Ref, v int32) (lo, hi Ref) {
	if n := m.nodes[f]; n.variable == v {
		return n.lo, n.hi
	}
	return f, f
}

// Fixed gives variables a value. A variable that it does not name is free.
type Fixed map[int]bool

// Restrict is f with some variables fixed.
func (m *Manager) Restrict(f Ref, to Fixed) Ref {
	if len(to) == 0 {
		return f
	}
	return m.rewritten(f, func(v int32, lo, hi Ref) Ref {
		if value, ok := to[int(v)]; ok {
			if value {
				return hi
			}
			return lo
		}
		return m.Ite(m.Var(int(v)), hi, lo)
	})
}

// Compose is f with the function g in the place of a variable.
func (m *Manager) Compose(f Ref, v int, g Ref) Ref {
	return m.Ite(g, m.Restrict(f, Fixed{v: true}), m.Restrict(f, Fixed{v: false}))
}

// Exists holds where some values of the variables make f hold.
func (m *Manager) Exists(f Ref, variables map[int]bool) Ref {
	if len(variables) == 0 {
		return f
	}
	return m.rewritten(f, func(v int32, lo, hi Ref) Ref {
		if variables[int(v)] {
			return m.Or(lo, hi)
		}
		return m.Ite(m.Var(int(v)), hi, lo)
	})
}

// rewritten builds a function anew from the bottom; join makes a node's new function from those of its branches, and must
// not rewrite by itself.
func (m *Manager) rewritten(f Ref, join func(v int32, lo, hi Ref) Ref) Ref {
	if len(m.done) < len(m.nodes) {
		m.done = append(m.done, make([]Ref, len(m.nodes)-len(m.done))...)
	}
	m.visited = m.visited[:0]
	r := m.rewrite(f, join)
	for _, v := range m.visited {
		m.done[v] = False
	}
	return r
}

func (m *Manager) rewrite(f Ref, join func(v int32, lo, hi Ref) Ref) Ref {
	if f <= True {
		return f
	}
	if r := m.done[f]; r != False {
		return r - 1
	}
	n := m.nodes[f]
	r := join(n.variable, m.rewrite(n.lo, join), m.rewrite(n.hi, join))
	m.done[f] = r + 1
	m.visited = append(m.visited, f)
	return r
}

// Support is the variables on which f depends.
func (m *Manager) Support(f Ref) map[int]bool {
	variables, seen := map[int]bool{}, map[Ref]bool{}
	var walk func(Ref)
	walk = func(f Ref) {
		if f <= True || seen[f] {
			return
		}
		seen[f] = true
		n := m.nodes[f]
		variables[int(n.variable)] = true
		walk(n.lo)
		walk(n.hi)
	}
	walk(f)
	return variables
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
	costs := map[Ref]int{}
	m.cost(f, weights, costs)
	assignment := make([]bool, len(weights))
	for f > True {
		n := m.nodes[f]
		if m.cost(n.hi, weights, costs)+weights[n.variable] < m.cost(n.lo, weights, costs) {
			assignment[n.variable] = true
			f = n.hi
		} else {
			f = n.lo
		}
	}
	return assignment, true
}

const never = 1 << 30

func (m *Manager) cost(f Ref, weights []int, known map[Ref]int) int {
	switch f {
	case True:
		return 0
	case False:
		return never
	}
	if c, ok := known[f]; ok {
		return c
	}
	n := m.nodes[f]
	c := min(m.cost(n.lo, weights, known), m.cost(n.hi, weights, known)+weights[n.variable], never)
	known[f] = c
	return c
}
