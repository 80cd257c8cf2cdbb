// SPDX-License-Identifier: Apache-2.0

package bdd

import (
	"math/rand"
	"testing"
)

const variables = 6

// table is a boolean function as the list of its values: bit i is the value where the variables are the bits of i.
type table uint64

func (t table) at(i int) bool { return t>>i&1 == 1 }

func tableOf(value func(i int) bool) table {
	var t table
	for i := range 1 << variables {
		if value(i) {
			t |= 1 << i
		}
	}
	return t
}

func bits(i int) []bool {
	all := make([]bool, variables)
	for v := range all {
		all[v] = i>>v&1 == 1
	}
	return all
}

// both is one function in the two forms.
type both struct {
	ref   Ref
	table table
}

func randomFunction(m *Manager, r *rand.Rand, depth int) both {
	if depth == 0 {
		v := r.Intn(variables)
		return both{m.Var(v), tableOf(func(i int) bool { return i>>v&1 == 1 })}
	}
	f, g, h := randomFunction(m, r, depth-1), randomFunction(m, r, depth-1), randomFunction(m, r, depth-1)
	v, value := r.Intn(variables), r.Intn(2) == 1
	with := func(i int, bit bool) int {
		if bit {
			return i | 1<<v
		}
		return i &^ (1 << v)
	}
	switch r.Intn(7) {
	case 0:
		return both{m.And(f.ref, g.ref), f.table & g.table}
	case 1:
		return both{m.Or(f.ref, g.ref), f.table | g.table}
	case 2:
		return both{m.Not(f.ref), ^f.table}
	case 3:
		return both{m.Restrict(f.ref, Fixed{v: value}), tableOf(func(i int) bool { return f.table.at(with(i, value)) })}
	case 4:
		return both{m.Exists(f.ref, map[int]bool{v: true}), tableOf(func(i int) bool { return f.table.at(with(i, true)) || f.table.at(with(i, false)) })}
	case 5:
		return both{m.Without(f.ref, g.ref), f.table &^ g.table}
	default:
		return both{m.Ite(f.ref, g.ref, h.ref), f.table&g.table | ^f.table&h.table}
	}
}

func TestFunctionsAgreeWithTruthTables(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	m := New(1 << 20)
	weights := []int{3, 1, 4, 1, 5, 9}
	known := map[table]Ref{}
	before := both{False, 0}
	for range 2000 {
		f := randomFunction(m, r, 4)
		for i := range 1 << variables {
			if m.Holds(f.ref, bits(i)) != f.table.at(i) {
				t.Fatalf("function %d is %t at %v", f.ref, !f.table.at(i), bits(i))
			}
		}
		if former, ok := known[f.table]; ok && former != f.ref {
			t.Fatalf("two forms of one function: %d and %d", former, f.ref)
		}
		known[f.table] = f.ref
		if got, want := m.Meet(f.ref, before.ref), f.table&before.table != 0; got != want {
			t.Fatalf("functions %d and %d hold somewhere at once: %t", f.ref, before.ref, got)
		}
		before = f
		checkCheapest(t, m, f, weights)
		checkSupport(t, m, f)
	}
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
}

func checkCheapest(t *testing.T, m *Manager, f both, weights []int) {
	t.Helper()
	cost := func(assignment []bool) int {
		sum := 0
		for v, value := range assignment {
			if value {
				sum += weights[v]
			}
		}
		return sum
	}
	got, ok := m.Cheapest(f.ref, weights)
	if ok != (f.table != 0) {
		t.Fatalf("an assignment is found: %t, and the table is %x", ok, f.table)
	}
	if !ok {
		return
	}
	if !m.Holds(f.ref, got) {
		t.Fatalf("%v does not satisfy the function", got)
	}
	for i := range 1 << variables {
		if f.table.at(i) && cost(bits(i)) < cost(got) {
			t.Fatalf("%v costs %d, and %v only %d", got, cost(got), bits(i), cost(bits(i)))
		}
	}
}

func checkSupport(t *testing.T, m *Manager, f both) {
	t.Helper()
	support := m.Support(f.ref)
	for v := range variables {
		depends := false
		for i := range 1 << variables {
			depends = depends || f.table.at(i) != f.table.at(i^1<<v)
		}
		if depends != support.Has(v) {
			t.Fatalf("the function depends on variable %d: %t, and its support says %t", v, depends, support.Has(v))
		}
	}
}

func TestAFunctionWithoutASmallFormIsAnErrorAndNotABlowUp(t *testing.T) {
	const pairs = 40 // (x0 && x40) || (x1 && x41) ...: 2^40 nodes in this order
	m := New(10_000)
	f := False
	for i := range pairs {
		f = m.Or(f, m.And(m.Var(i), m.Var(i+pairs)))
	}
	if m.Err() == nil || m.Err().Error() != "the conditions have no form of fewer than 10000 nodes" {
		t.Errorf("got %v", m.Err())
	}
	if len(m.nodes) > 10_000 {
		t.Errorf("%d nodes were made", len(m.nodes))
	}
}
