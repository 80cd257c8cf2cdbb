// SPDX-License-Identifier: Apache-2.0

package explorer

// player plays a lifecycle on a world and notes what it breaks.
type player struct {
	m      *Machine
	broken []breach
	moves  int
	wanted []string     // reused between visits
	tell   func(string) // nil where nobody listens
}

func (p *player) breaks(rule Rule, text string) { p.broken = append(p.broken, breach{rule, text}) }

func (p *player) say(text string) {
	if p.tell != nil {
		p.tell(text)
	}
}

// consents says that what runs on the machine may be stopped, whoever runs it.
func (p *player) consents(w *World) bool { return w.Consent || p.m.takesOver }

// strange says that a stranger runs on the machine: nobody consented, and no claim holds it.
func (p *player) strange(w *World) bool {
	return w.On && w.Runs == Stranger && !w.Ours && !p.consents(w) && !w.bound()
}

// tenanted says that what runs belongs to a holder whom nobody released.
func tenanted(w *World) bool { return w.On && w.Runs == Tenant && w.Data == HeldData }

// judgeStop judges that the machine loses its power. By word says that a claim or an operation asks for it.
func (p *player) judgeStop(w *World, byWord bool) {
	if w.erasing() {
		p.breaks(NeverCutAnErase, "power is taken in the middle of an erase")
	}
	if p.strange(w) {
		p.breaks(NotAStranger, "a stranger's machine is stopped")
	}
	waits := w.On && w.Runs == Tenant && w.Grace && !p.m.powerGoes // runs on until the grace is over
	if (tenanted(w) || waits) && !byWord && !p.consents(w) && w.Op != Park {
		p.breaks(NotInUse, "a tenant's machine is stopped without anybody's word")
	}
}

// judgeErase judges that disks are erased, or that the image is booted that erases them.
func (p *player) judgeErase(w *World, what string) {
	switch {
	case w.Ref && !w.Record && (w.Claim == Bound || w.Claim == Binding):
		p.breaks(NeverWipeClaimed, what+" while a claim holds the machine")
	case w.retained():
		p.breaks(NeverWipeRetained, what+" while the data is retained")
	case !w.released() || w.Data == HeldData:
		p.breaks(AbsenceIsNotEvidence, what+" and nobody released it")
	}
}

// judgeBoot judges that what was prepared is booted.
func (p *player) judgeBoot(w *World) {
	switch {
	case w.Boot == Wiper:
		p.judgeErase(w, "the wipe image is booted")
	case w.Boot == Probe && w.Ref && !w.Record:
		p.breaks(NeverOnAClaim, "the probe is booted on a machine that a claim is written on")
	}
}

// judgeArm judges that an agent's boot is prepared.
func (p *player) judgeArm(w *World, what string) {
	if p.strange(w) || tenanted(w) {
		p.breaks(RunningBootKept, what+" is prepared for a machine on which somebody's system runs")
	}
}

// judgeMarks judges that a move takes marks away and sets others.
func (p *player) judgeMarks(w *World, clears, sets uint8) {
	if sets&managed != 0 && p.strange(w) {
		p.breaks(EarnedByBoot, "a machine on which a stranger runs is called ours")
	}
	switch {
	case clears&w.Marks&dirty == 0:
	case w.Data == HeldData || w.Data == FormerData && !w.released():
		p.breaks(ClearOnlyReleased, "the machine is called clean, and holds the data of a holder whom nobody released")
	case w.Data == FormerData && !p.m.waived:
		p.breaks(ClearOnlyOnProof, "the machine is called clean, and holds a former holder's data")
	}
}

// judgeOffer judges a machine that a claim may be given.
func (p *player) judgeOffer(w *World) {
	if p.m.in(w, "Available") && !w.Ref && w.Seen && !p.consents(w) {
		p.breaks(HandsOff, "a machine is offered that was found running, and nobody has consented since")
	}
	if p.m.in(w, "Available") && !w.Ref && (w.Data == HeldData || (w.Data == FormerData && (w.Grace || !p.m.waived))) {
		p.breaks(NeverOfferDirty, "the machine is offered, and holds a holder's data")
	}
}

// judgeParking judges that a rule, or where the lifecycle begins, hands a machine to somebody outside. One that was parked before may be used
// by whoever has it.
func (p *player) judgeParking(w *World, to string) {
	if to == "Parked" && w.On && !w.ParkNote {
		p.breaks(ParkedOnlyOff, "a machine that runs is handed to somebody outside")
	}
}

// judgeEnd judges that a rule takes a machine out of service.
func (p *player) judgeEnd(w *World, to string) {
	if to != "Decommissioned" {
		return
	}
	if !w.Leaving {
		p.breaks(DecommissionedOnlyAsked, "a machine goes out of service that nobody asked for")
	}
	if w.On {
		p.breaks(DecommissionedOnlyOff, "a machine that runs goes out of service")
	}
	if w.Ref {
		p.breaks(DecommissionedUnclaimed, "a machine goes out of service that a claim is written on")
	}
	if w.Data == HeldData || (w.Data == FormerData && !p.m.waived && !w.answered()) {
		p.breaks(DecommissionedClean, "a machine goes out of service with a holder's data for which nobody answers")
	}
}

// judgeHands judges that an effect which touches the machine is wanted.
func (p *player) judgeHands(w *World, effect string) {
	if w.Given && touching[effect] {
		p.breaks(HandsOff, effect+" on a machine that was handed to somebody outside, and not handed back")
		return
	}
	if w.Gone && touching[effect] {
		p.breaks(HandsOff, effect+" on a machine that is out of service, and that nobody asked back")
		return
	}
	begun := w.Wipe == Erasing || (w.Boot == Wiper && (w.On || !w.reached())) // is brought to its end, or may be under way
	if w.Serviced && touching[effect] && !begun {
		p.breaks(HandsOff, effect+" on a machine that is handed to a maintenance")
		return
	}
	if w.Seen && !p.consents(w) && !w.bound() && disturbing[effect] {
		p.breaks(HandsOff, effect+" on a machine that was found running, and nobody has consented since")
	}
}

// touching are the effects that change something at the machine or at what it boots.
var touching = map[string]bool{"PowerOn": true, "PowerOff": true, "PowerAsClaimed": true, "BootProbe": true, "BootWipe": true,
	"BootAsClaimed": true, "ResetAsAsked": true, "Locate": true, "ApplyBootOrder": true}

// disturbing are those of them that its user would notice.
var disturbing = map[string]bool{"PowerOn": true, "PowerOff": true, "PowerAsClaimed": true, "BootProbe": true, "BootWipe": true,
	"ResetAsAsked": true, "ApplyBootOrder": true}
