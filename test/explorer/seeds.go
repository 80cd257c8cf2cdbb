// SPDX-License-Identifier: Apache-2.0

package explorer

// seed is a world in which a lifecycle begins.
type seed struct {
	name  string
	world World
}

// seeds are the ways in which a machine may come to us.
func (m *Machine) seeds() []seed {
	fresh := World{State: m.initial, Lost: true}
	with := func(change func(*World)) World {
		w := fresh
		change(&w)
		return w
	}
	return []seed{
		{"a new machine that is off", fresh},
		{"a new machine, found running", with(func(w *World) { w.On, w.Runs = true, Stranger })},
		{"a new machine that runs, behind a BMC that is silent", with(func(w *World) { w.On, w.Runs, w.BMC = true, Stranger, Silent })},
		{"a machine that another operator gave to a claim, running", with(func(w *World) {
			w.On, w.Runs, w.Data, w.Marks = true, Tenant, HeldData, dirty
			w.Ref, w.Claim, w.Holder = true, Bound, true
		})},
		{"a machine with a holder's data, found again off", with(func(w *World) {
			w.Data, w.Marks, w.Holder, w.Kept = HeldData, dirty, true, true
		})},
		{"a machine with a holder's data, found again running", with(func(w *World) {
			w.Data, w.Marks, w.Holder, w.Kept = HeldData, dirty, true, true
			w.On, w.Runs = true, Tenant
		})},
	}
}
