// SPDX-License-Identifier: Apache-2.0

package explorer

import "slices"

// claimEvents is what tenants and the scheduler do.
var claimEvents = []event{
	{"a claim is given it", true, func(p *player, w *World) bool {
		could := p.m.in(w, "Available") && !w.Lost && w.reached() && !w.On && !w.Ref && w.Claim == NoClaim && !w.Serviced
		if could {
			w.Ref, w.Claim, w.WantsOff = true, Binding, false
			w.Holder, w.Record, w.Grace = true, false, false // the record names another holder
		}
		return could
	}},
	{"the claim's own reference is written", true, func(_ *player, w *World) bool {
		could := w.Claim == Binding && w.Ref
		if could {
			w.Claim = Bound
		}
		return could
	}},
	{"the claim is deleted", true, func(p *player, w *World) bool {
		could := w.Claim == Binding || w.Claim == Bound
		if could {
			w.release()
			w.Grace = p.m.graced
		}
		return could
	}},
	{"the grace of its release is over", true, func(_ *player, w *World) bool { return flip(&w.Grace, false) }},
	{"its release is undone", false, func(p *player, w *World) bool {
		could := w.Grace && w.Ref && w.Boot != Wiper && p.m.accepts(w, "undo-release")
		if could {
			w.Record, w.Grace, w.Claim = false, false, Vanished
			if w.Data == FormerData {
				w.Data = HeldData
			}
		}
		return could
	}},
	{"the claim asks for power Off", false, func(_ *player, w *World) bool { return w.Claim == Bound && flip(&w.WantsOff, true) }},
	{"the claim asks for power On", false, func(_ *player, w *World) bool { return w.Claim == Bound && flip(&w.WantsOff, false) }},
	{"the claim vanishes without a release", false, func(_ *player, w *World) bool {
		could := w.Claim == Binding || w.Claim == Bound
		if could {
			w.Claim = Vanished
		}
		return could
	}},
	{"the claim that vanished is restored", false, func(_ *player, w *World) bool {
		could := w.Claim == Vanished && w.Ref && !w.Record
		if could {
			w.Claim = Bound
		}
		return could
	}},
	{"claim and server are restored as they were before the release", false, func(_ *player, w *World) bool {
		could := w.Claim == NoClaim && w.Record && w.Holder
		if could {
			w.Ref, w.Claim, w.Record, w.Grace = true, Bound, false, false
			if w.Data == FormerData {
				w.Data = HeldData
			}
		}
		return could
	}},
	{"a claim and its server are made to name each other by hand", false, func(_ *player, w *World) bool {
		could := !w.Ref && w.Claim == NoClaim && w.Data == NoData
		if could {
			w.Ref, w.Claim, w.Record, w.Grace, w.Holder, w.WantsOff, w.Agreed = true, Bound, false, false, true, false, false
		}
		return could
	}},
}

// release is a durable record of the end of what holds the machine.
func (w *World) release() {
	w.Claim, w.Record = NoClaim, true
	if w.Data == HeldData {
		w.Data = FormerData
	}
}

// userEvents is what the people who run the fleet do.
var userEvents = []event{
	{"a reference to no claim is written on it", false, func(_ *player, w *World) bool {
		return w.Claim == NoClaim && flip(&w.Ref, true)
	}},
	{"the reference to its claim is cleared", false, func(_ *player, w *World) bool {
		if w.Claim == Vanished {
			w.Claim = NoClaim
		}
		return flip(&w.Ref, false)
	}},
	{"the reference to its claim is written again", false, func(_ *player, w *World) bool { return w.Claim == Bound && flip(&w.Ref, true) }},
	{"its data is to be retained", false, func(_ *player, w *World) bool { return flip(&w.Retain, true) }},
	{"its data need not be retained any more", false, func(_ *player, w *World) bool { return flip(&w.Retain, false) }},
	{"somebody consents to take it over", false, func(_ *player, w *World) bool {
		could := flip(&w.Consent, true)
		w.Ours, w.Seen = w.Ours || could, w.Seen && !could
		return could
	}},
	{"a maintenance begins", false, func(_ *player, w *World) bool { return flip(&w.Serviced, true) }},
	{"a maintenance of ours begins", false, func(_ *player, w *World) bool {
		could := flip(&w.Serviced, true)
		if could {
			w.Granted, w.Agreed = true, w.bound()
		}
		return could
	}},
	{"the maintenance asks for power Off", false, func(_ *player, w *World) bool { return w.Granted && flip(&w.ServiceOff, true) }},
	{"the maintenance is over", false, func(_ *player, w *World) bool {
		w.Granted, w.Agreed, w.ServiceOff = false, false, false
		return flip(&w.Serviced, false)
	}},
	{"somebody asks to park it", false, asks(Park)},
	{"somebody asks to unpark it", false, asks(Unpark)},
	{"somebody asks to retry", false, asks(Retry)},
	{"somebody asks to take it out of service", false, func(p *player, w *World) bool {
		_, defined := p.m.places["Decommissioned"]
		return defined && !w.Lost && !p.m.in(w, "Decommissioned") && !p.m.in(w, "Parked") && !p.m.in(w, "Observing") && flip(&w.Leaving, true)
	}},
	{"somebody asks to take it back into service", false, func(p *player, w *World) bool {
		if p.m.in(w, "Decommissioned") {
			return asks(Recommission)(p, w)
		}
		return !w.Lost && flip(&w.Leaving, false)
	}},
	{"a person answers for each of its disks", false, func(_ *player, w *World) bool {
		return w.Leaving && w.Marks&dirty != 0 && flip(&w.Attested, true)
	}},
	{"somebody asks for a power cycle", false, asks(PowerCycle)},
	{"somebody asks to force it off", false, asks(ForceOff)},
	{"somebody asks to force it on", false, asks(ForceOn)},
	{"somebody asks for a hard restart", false, asks(HardRestart)},
	{"somebody asks for a graceful restart", false, asks(GracefulRestart)},
	{"somebody releases it by hand", false, func(p *player, w *World) bool {
		could := p.m.accepts(w, "release") && (w.Claim == NoClaim || w.Claim == Vanished) && w.Holder && !w.Record
		if could {
			w.release()
		}
		return could
	}},
}

func asks(op Operation) func(*player, *World) bool {
	return func(p *player, w *World) bool {
		could := w.Op == NoOperation && p.m.accepts(w, operationNames[op])
		if could {
			w.Op, w.OpOld = op, false
		}
		return could
	}
}

// accepts says that the state lists an operation; any other is refused and leaves nothing behind.
func (m *Machine) accepts(w *World, operation string) bool {
	return !w.Lost && slices.Contains(m.states[w.State].operations, operation)
}
