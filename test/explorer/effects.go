// SPDX-License-Identifier: Apache-2.0

package explorer

// progress is what became of an effect.
type progress uint8

const (
	holds   progress = iota // nothing was to be done
	changed                 // the world is another
	pending                 // it waits for something, and holds back what comes after it
)

// effects is what each effect does when nobody holds it back.
var effects map[string]func(*player, *World) progress

func init() { // the table and what is in it know each other
	effects = map[string]func(*player, *World) progress{
		"PowerOff":          func(p *player, w *World) progress { return p.powerOff(w, false) },
		"PowerOn":           (*player).powerOn,
		"PowerAsClaimed":    (*player).powerAsClaimed,
		"BootProbe":         (*player).bootProbe,
		"BootWipe":          (*player).bootWipe,
		"BootAsClaimed":     (*player).bootAsClaimed,
		"ClearBoot":         (*player).clearBoot,
		"ReleaseClaim":      (*player).releaseClaim,
		"ForgetHolder":      (*player).forgetHolder,
		"ResetAsAsked":      (*player).resetAsAsked,
		"ApplyBootOrder":    (*player).applyBootOrder,
		"Locate":            func(*player, *World) progress { return holds },
		"AsMaintenanceAsks": (*player).asMaintenanceAsks,
	}
}

func known(effect string) bool { return effects[effect] != nil }

func (p *player) powerOff(w *World, byWord bool) progress {
	switch {
	case !w.reached():
		return pending
	case !w.On:
		return holds
	}
	p.judgeStop(w, byWord)
	w.shutDown()
	return changed
}

// powerOn is for boots of ours: it waits while a claim's stands.
func (p *player) powerOn(w *World) progress {
	if w.Boot == Tenant {
		return pending
	}
	return p.boot(w)
}

// boot boots what was prepared. A machine that runs is left running.
func (p *player) boot(w *World) progress {
	switch {
	case !w.reached():
		return pending
	case w.On:
		return holds
	case !w.BootReady:
		return pending
	}
	p.judgeBoot(w)
	w.Marks |= managed
	w.Ours, w.Kept, w.Seen = true, true, false
	w.run(w.Boot)
	return changed
}

func (p *player) powerAsClaimed(w *World) progress {
	if !w.bound() {
		p.breaks(OnlyForTheHolder, "power follows a claim that does not hold the machine")
		return holds
	}
	if w.WantsOff {
		return p.powerOff(w, true)
	}
	return p.boot(w)
}

func (p *player) bootProbe(w *World) progress {
	switch {
	case w.Boot == Probe:
		return holds
	case !w.reached():
		return pending
	}
	if w.Ref && !w.Record {
		p.breaks(NeverOnAClaim, "the probe is prepared for a machine that a claim is written on")
	}
	p.judgeArm(w, "the probe")
	w.Boot, w.BootReady = Probe, false
	return changed
}

func (p *player) bootWipe(w *World) progress {
	switch {
	case w.Boot == Wiper:
		return holds
	case !w.reached():
		return pending
	}
	p.judgeArm(w, "the wipe")
	w.Boot, w.BootReady = Wiper, false
	return changed
}

// bootAsClaimed stores the marks first. What runs from then on is the claim's.
func (p *player) bootAsClaimed(w *World) progress {
	if !w.bound() {
		p.breaks(OnlyForTheHolder, "a boot is prepared for a claim that does not hold the machine")
		return holds
	}
	if w.Marks&(managed|dirty) != managed|dirty {
		w.Attested = w.Attested && w.Marks&dirty != 0
		w.Marks |= managed | dirty
		w.Ours, w.Kept, w.Seen = true, true, false
		if w.Runs == Stranger {
			w.Runs, w.Data = Tenant, HeldData
		}
		return changed
	}
	if w.Boot == Tenant {
		return holds
	}
	w.Boot, w.BootReady = Tenant, false
	return changed
}

func (p *player) clearBoot(w *World) progress {
	if w.Boot == Nothing {
		return holds
	}
	if w.Boot == Tenant && w.bound() {
		p.breaks(NeverOnAClaim, "the boot of the claim that holds the machine is taken away")
	}
	w.Boot, w.BootReady = Nothing, false
	return changed
}

func (p *player) releaseClaim(w *World) progress {
	if !w.Ref {
		return holds
	}
	if !w.released() {
		p.breaks(AbsenceIsNotEvidence, "the reference to a claim is cleared that nobody released")
	}
	if w.Retain && w.Data != NoData {
		p.breaks(NeverWipeRetained, "the reference is cleared by which the data is retained")
	}
	w.Ref = false
	if w.Claim == Vanished {
		w.Claim = NoClaim
	}
	return changed
}

func (p *player) forgetHolder(w *World) progress {
	if !w.Holder && !w.Record {
		return holds
	}
	if w.Data == HeldData || (w.Data == FormerData && (w.Grace || !p.m.waived)) {
		p.breaks(ForgetOnlyWhenClean, "the holder is forgotten whose data is on the disks")
	}
	if w.Ref && !w.Record {
		p.breaks(NeverOnAClaim, "the holder is forgotten whose claim is written on the machine")
	}
	w.Holder, w.Record, w.Grace = false, false, false
	return changed
}

// resetAsAsked does what was asked for. What comes up boots what is prepared, though nothing is asserted. A BMC that is asked
// to restart a machine by force may switch on one that is off; an operating system that is asked can only where it runs.
func (p *player) resetAsAsked(w *World) progress {
	if !w.Op.resets() {
		return holds
	}
	if !w.reached() {
		return pending
	}
	comesUp := w.Op != ForceOff && (w.On || w.Op != GracefulRestart)
	if w.On && w.Op == ForceOn {
		comesUp = false
	} else if w.On {
		p.judgeStop(w, true)
		w.shutDown()
	}
	if comesUp {
		if w.startsFromNetwork() {
			p.judgeBoot(w)
		}
		w.runWhatIsThere()
	}
	w.Op = NoOperation
	return changed
}

// asMaintenanceAsks waits wherever a safety rule does not hold, so that a maintenance halts nothing. What comes up boots as it would by
// itself, or something harmless.
func (p *player) asMaintenanceAsks(w *World) progress {
	switch {
	case !w.Granted || w.On != w.ServiceOff:
		return holds
	case !w.reached() || !w.consented() || w.Wipe == Erasing || w.Boot == Wiper || w.Marks&foreign != 0,
		w.On && w.Marks&managed == 0 && !p.consents(w):
		return pending
	}
	if !p.m.in(w, "Maintenance") {
		p.breaks(HandsOff, "what a maintenance asks for is done beside what the state does")
	}
	if w.On {
		p.judgeStop(w, w.consented())
		w.shutDown()
		return changed
	}
	w.Marks |= managed
	w.Ours, w.Kept, w.Seen = true, true, false
	if w.startsFromNetwork() {
		p.judgeBoot(w)
	}
	w.runWhatIsThere()
	return changed
}

func (p *player) applyBootOrder(w *World) progress {
	if !w.reached() {
		return pending
	}
	if p.strange(w) || tenanted(w) {
		p.breaks(OrderOnlyWhileOff, "the boot order of a machine is changed on which somebody's system runs")
	}
	return holds
}

// startsFromNetwork says that the machine would boot what was prepared, if it came up.
func (w *World) startsFromNetwork() bool { return w.Ours && w.BootReady }

// runWhatIsThere starts the machine without our doing: from the network where a boot is prepared and the machine asks for
// it, else from its disks.
func (w *World) runWhatIsThere() {
	switch {
	case w.startsFromNetwork():
		w.run(w.Boot)
	case w.Data != NoData:
		w.run(Tenant)
	case w.Ours:
		w.run(Idle)
	default:
		w.run(Stranger)
	}
}
