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
	// unique finds nodes by what they are.
	unique map[node]Ref
	// cache remembers results of Ite and of Meet; a newer one may take the place of an older.
	cache []triple
	limit int
	// variables is how many there are.
	variables int
	// steps counts what could not be taken from the cache: with many nodes made already, work may grow where nodes do not.
	steps int
	err   error
	notes notes
}

// New makes a Manager of at most limit nodes.
func New(limit int) *Manager {
	m := &Manager{limit: limit, cache: make([]triple, 1<<cacheBits), unique: map[node]Ref{}}
	m.nodes = []node{{variable: last}, {variable: last, lo: True, hi: True}}
	for i := range m.cache {
		m.cache[i].f = -1
	}
	return m
}

// Err says that the limit was reached. Every function made since then means nothing.
func (m *Manager) Err() error { return m.err }

// Var is the function that holds where the variable does. Variables count from 0; that is their order in the diagram.
func (m *Manager) Var(v int) Ref {
	m.variables = max(m.variables, v+1)
	return m.make(int32(v), False, True)
}

func (m *Manager) make(v int32, lo, hi Ref) Ref {
	if lo == hi {
		return lo
	}
	n := node{v, lo, hi}
	if r, ok := m.unique[n]; ok {
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
	m.unique[n] = r
	return r
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
	return m.ite(ordered(f, g, h))
}

// ordered lets the operands of a conjunction and of a disjunction stand in one order, so that both ways find the same result.
func ordered(f, g, h Ref) (Ref, Ref, Ref) {
	switch {
	case h == False && g < f:
		return g, f, h
	case g == True && h < f:
		return h, g, f
	}
	return f, g, h
}

// ite is Ite of what has no answer at once.
func (m *Manager) ite(f, g, h Ref) Ref {
	slot := &m.cache[hash(uint32(f), uint32(g), uint32(h))>>(32-cacheBits)]
	if slot.f == f && slot.g == g && slot.h == h {
		return slot.result
	}
	if !m.step() {
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

// meets stands in the cache where a result of Ite has its third operand. No function has its number.
const meets = last

// Meet says whether two functions hold somewhere at once. It makes no node, and stops at the first place.
func (m *Manager) Meet(f, g Ref) bool {
	switch {
	case f == False || g == False || m.err != nil:
		return false
	case f == True || g == True || f == g:
		return true
	}
	if g < f {
		f, g = g, f
	}
	slot := &m.cache[hash(uint32(f), uint32(g), uint32(meets))>>(32-cacheBits)]
	if slot.f == f && slot.g == g && slot.h == meets {
		return slot.result == True
	}
	if !m.step() {
		return false
	}
	v := min(m.nodes[f].variable, m.nodes[g].variable)
	f0, f1 := m.branches(f, v)
	g0, g1 := m.branches(g, v)
	result := False
	if m.Meet(f0, g0) || m.Meet(f1, g1) {
		result = True
	}
	*slot = triple{f, g, meets, result}
	return result == True
}

// step counts one step, and says whether it may be taken.
func (m *Manager) step() bool {
	m.steps++
	if m.steps > m.limit*stepsPerNode {
		m.err = fmt.Errorf("the conditions take more than %d steps to combine", m.limit*stepsPerNode)
	}
	return m.err == nil
}

func (m *Manager) branches(f Ref, v int32) (lo, hi Ref) {
	if n := m.nodes[f]; n.variable == v {
		return n.lo, n.hi
	}
	return f, f
}
