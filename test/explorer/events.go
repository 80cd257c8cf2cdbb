// SPDX-License-Identifier: Apache-2.0

package explorer

import "slices"

// event is something that happens to a world without the lifecycle's doing.
type event struct {
	name string
	// routine is what happens every day. The exploration counts the others, and looks first where few of them happened.
	routine bool
	// do changes the world, and says whether this could happen.
	do func(*player, *World) bool
}

// events are everything that users, hands, hardware and agents do.
var events = slices.Concat(agentEvents, claimEvents, userEvents, machineEvents)

// agentEvents is what the boot operator and the agents do.
var agentEvents = []event{
	{"the boot is prepared", true, func(_ *player, w *World) bool {
		could := w.Boot != Nothing && !w.BootReady
		w.BootReady = w.BootReady || could
		return could
	}},
	{"the boot that was prepared is deleted", false, func(_ *player, w *World) bool {
		could := w.Boot == Probe || w.Boot == Wiper
		if could {
			w.Boot, w.BootReady = Nothing, false
		}
		return could
	}},
	{"the probe reports", true, func(_ *player, w *World) bool {
		could := w.On && w.Runs == Probe && !w.OldAgent && w.Report != CurrentReport
		if could {
			w.Report = CurrentReport
		}
		return could
	}},
	{"the wipe agent reports what it found", true, func(_ *player, w *World) bool {
		could := w.On && w.Runs == Wiper && !w.OldAgent && w.Report != CurrentReport
		if could {
			w.Report = CurrentReport
		}
		return could
	}},
	{"the agent begins to erase", true, func(p *player, w *World) bool {
		could := w.On && w.Runs == Wiper && !w.OldAgent && (w.Wipe == NoWipe || w.OldWipe) && p.upToDate(w)
		if could {
			p.judgeErase(w, "the erase is begun")
			w.Wipe, w.OldWipe = Erasing, false
		}
		return could
	}},
	{"the erase is done and checked", true, func(p *player, w *World) bool {
		could := w.erasing() && !w.OldAgent && p.upToDate(w)
		if could {
			p.judgeErase(w, "the erase goes on") // it asked before the last disk, and was told to go on
			w.Wipe, w.Data, w.Report = Verified, NoData, CurrentReport
		}
		return could
	}},
	{"a disk cannot be erased", false, func(_ *player, w *World) bool {
		could := w.erasing() && !w.OldAgent
		if could {
			w.Wipe = FailedWipe
		}
		return could
	}},
	{"the agent that erased is not heard of any more", false, func(_ *player, w *World) bool {
		could := w.Wipe == Erasing
		if could {
			w.Wipe, w.OldWipe = NoWipe, false
			if w.On && w.Runs == Wiper {
				w.Runs = Idle
			}
		}
		return could
	}},
	{"time passes to the next deadline", false, func(p *player, w *World) bool { return p.m.wait(w) }},
}

// upToDate says that the lifecycle has seen the world and wants no move. The agent asks before each disk whether its entry
// is current, and an answer that a visit is about to overtake is a race that no lifecycle can win.
func (p *player) upToDate(w *World) bool { return p.m.decide(w, p.wanted).move == nil }

// wait lets time pass until the next deadline of the state. Time in which the BMC does not answer does not count.
func (m *Machine) wait(w *World) bool {
	if !w.reached() {
		return false
	}
	next := w.Age
	for i := range m.states[w.State].exits {
		if after := m.states[w.State].exits[i].after; after > m.ages[w.Age] {
			if place, _ := slices.BinarySearch(m.ages, after); next == w.Age || uint8(place) < next {
				next = uint8(place)
			}
		}
	}
	if m.readsAge && int(w.Age)+1 < len(m.ages) {
		next = w.Age + 1
	}
	could := next != w.Age
	w.Age = next
	return could
}

// machineEvents is what hands, hardware and firmware do.
var machineEvents = []event{
	{"somebody switches it on by hand", false, func(_ *player, w *World) bool {
		could := !w.On
		if could {
			w.runWhatIsThere()
		}
		return could
	}},
	{"it goes off by itself", false, func(_ *player, w *World) bool {
		could := w.On
		if could {
			w.shutDown()
		}
		return could
	}},
	{"the BMC falls silent", false, func(_ *player, w *World) bool {
		could := w.BMC == Answers
		w.BMC = Silent
		return could
	}},
	{"another machine answers in its place", false, func(_ *player, w *World) bool {
		could := w.BMC == Answers
		w.BMC = OtherMachine
		return could
	}},
	{"the BMC answers again", false, func(_ *player, w *World) bool {
		could := w.BMC != Answers
		w.BMC = Answers
		return could
	}},
	{"the BMC refuses the power change again and again", false, func(_ *player, w *World) bool {
		return w.BMC == Answers && flip(&w.Refused, true)
	}},
	{"a critical fault shows", false, func(_ *player, w *World) bool { return flip(&w.Critical, true) }},
	{"the fault is mended", false, func(_ *player, w *World) bool { return flip(&w.Critical, false) }},
	{"the status is lost", false, func(p *player, w *World) bool {
		if w.Lost {
			return false
		}
		w.State, w.Lost, w.Retries, w.Op = p.m.initial, true, 0, NoOperation
		w.newEntry()
		before := w.Marks
		w.Marks = inherited(w)
		w.Attested = w.Attested && before&dirty >= w.Marks&dirty
		w.Gone = false                          // where it is then, and what is done there, is a fear of data
		w.Seen = w.Seen && w.Marks&foreign != 0 // what was not yet noted is nobody's fault
		return true
	}},
}

// inherited are the marks of a server whose status is gone: what its inventory and its reference tell. What the inventory
// tells of a machine that was given away meanwhile is no doing of a bundle, and left out.
func inherited(w *World) uint8 {
	switch {
	case w.Marks&foreign != 0 && (w.Kept || w.Ref || w.Noted):
		return dirty | foreign
	case w.Marks&foreign != 0:
		return foreign
	case w.Kept && w.Ours:
		return dirty | managed
	case w.Kept:
		return dirty
	case w.Ref, w.Noted:
		return dirty
	default:
		return 0
	}
}

func flip(b *bool, to bool) bool {
	could := *b != to
	*b = to
	return could
}
