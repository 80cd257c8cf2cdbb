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
	return append(m.seedsOfDropped(), []seed{
		{"a new machine that is off", fresh},
		{"a new machine, found running", with(func(w *World) { w.On, w.Runs = true, Stranger })},
		{"a new machine that runs, behind a BMC that is silent", with(func(w *World) { w.On, w.Runs, w.BMC = true, Stranger, Silent })},
		{"a machine that was parked, and whose status is lost", with(func(w *World) { w.ParkNote, w.Given, w.Ours = true, true, true })},
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
	}...)
}

// seedsOfDropped are servers that another lifecycle left in a state of its own, with whatever it thought of them.
func (m *Machine) seedsOfDropped() []seed {
	var all []seed
	for _, at := range m.dropped {
		left := "a server left in " + m.states[at].name + ", "
		all = append(all,
			seed{left + "off and clean", World{State: at}},
			seed{left + "of ours, with a released holder's data", World{State: at, Marks: managed | dirty, Data: FormerData, Holder: true,
				Record: true, Ours: true, Kept: true, Noted: true}},
			seed{left + "of ours, with a holder's data", World{State: at, Marks: managed | dirty, Data: HeldData, Holder: true,
				Ours: true, Kept: true, Noted: true}},
			seed{left + "found running", World{State: at, Marks: foreign, On: true, Runs: Stranger, Seen: true}},
			seed{left + "found running, and off by itself", World{State: at, Marks: foreign, Seen: true}})
	}
	return all
}
