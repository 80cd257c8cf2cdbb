// SPDX-License-Identifier: Apache-2.0

package explorer

import "slices"

// maxRetries is as far as retries are counted.
const maxRetries = 9

// visit reads the world once, and either moves the server or does the next thing that its state wants. It says whether
// anything changed, so that a visit after it would see something else.
func (p *player) visit(w *World) bool {
	if w.Marks&managed != 0 {
		w.Consent = false // it has served: from now on the mark lets the machine be stopped
	}
	w.Noted = w.Noted || w.Marks&dirty != 0
	p.look(w)
	if p.m.isLost(w) {
		return false
	}
	d := p.m.decide(w, p.wanted)
	if x := p.m.resumes(w); x != nil && (d.halted || d.move == nil || d.move.to != x.to) {
		d = decision{move: x}
	}
	switch {
	case d.halted:
		return false
	case d.move != nil:
		p.move(w, d.move)
		return true
	case w.Lost: // a lifecycle begins with a decision, and acts on the next
		p.begin(w)
		return true
	}
	p.wanted = d.effects
	p.judgeOffer(w)
	for _, effect := range d.effects {
		p.judgeHands(w, effect)
		switch effects[effect](p, w) {
		case changed:
			p.say(effect)
			return true
		case pending:
			return false
		case holds:
		}
	}
	return false
}

// begin begins a lifecycle anew in the state that the server shows.
func (p *player) begin(w *World) {
	p.judgeParking(w, p.m.states[w.State].name)
	if w.Lost, w.ParkNote = false, p.m.in(w, "Parked"); !w.ParkNote {
		w.From = 0
	}
	w.Marks |= p.m.states[w.State].marks
}

// look takes in what a machine shows: the engine keeps the mark Stranger by what it is shown, and the judge remembers what is
// so.
func (p *player) look(w *World) {
	ours := p.consents(w) || w.bound()
	switch {
	case ours || w.Marks&managed != 0:
		w.Marks &^= foreign
	case w.reached() && w.On && w.Wipe != Erasing:
		w.Marks |= foreign
	}
	w.Seen = !ours && (w.Seen || (w.reached() && p.strange(w)))
}

// parkedIn are the words of server.parkedFrom.
var parkedIn = []string{"None", "Error", "Released"}

// move takes a server to another state, which is a new entry: what was prepared or proved for the former one is old.
func (p *player) move(w *World, x *exit) {
	p.moves++
	p.say(x.rule + " to " + p.m.states[x.to].name)
	to := &p.m.states[x.to]
	p.judgeMarks(w, x.clears, to.marks)
	if x.rule != migrated {
		p.judgeParking(w, to.name)
		p.judgeEnd(w, to.name)
		w.Gone = w.Gone || to.name == "Decommissioned"
	}
	if w.Op != NoOperation {
		p.serve(w, x, to)
	}
	if x.clears&dirty != 0 && p.m.waived && w.Data == FormerData {
		w.Data = NoData // the bundle says that it is nobody's any more
	}
	w.Marks = w.Marks&^x.clears | to.marks
	switch {
	case to.name != "Parked":
		w.From = 0
	case !w.Lost: // the marker of a lost status keeps it
		w.From = uint8(max(0, slices.Index(parkedIn, p.m.states[w.State].name)))
	}
	w.State, w.Lost = x.to, false
	w.ParkNote = p.m.in(w, "Parked")
	switch {
	case to.stable:
		w.Retries = 0
	case x.retry:
		w.Retries = min(w.Retries+1, maxRetries)
	}
	w.newEntry()
	p.judgeOffer(w)
}

// serve ends the operation that a move is made for, and one that the state entered does not accept.
func (p *player) serve(w *World, x *exit, to *stateRules) {
	served := p.servedBy(w, x)
	w.Given = (w.Given && (!served || w.Op != Unpark)) || (served && w.Op == Park)
	if served && w.Op == Recommission {
		w.Leaving, w.Gone = false, false
	}
	if served || !slices.Contains(to.operations, operationNames[w.Op]) {
		w.Op = NoOperation
	}
}

// resumes is the move into the state that is known without the status: of a server that was parked a marker tells.
func (m *Machine) resumes(w *World) *exit {
	if at, defined := m.places["Parked"]; w.Lost && w.ParkNote && defined {
		return &exit{rule: "resumed", to: at}
	}
	return nil
}

// isLost says that a server was parked, and that its status is gone under a lifecycle that has no such state: it is halted.
func (m *Machine) isLost(w *World) bool {
	_, defined := m.places["Parked"]
	return w.Lost && w.ParkNote && !defined
}

// newEntry makes old what belonged to the former entry.
func (w *World) newEntry() {
	w.Age = 0
	w.Boot, w.BootReady, w.Refused = Nothing, false, false
	w.OldAgent = w.Runs == Probe || w.Runs == Wiper
	w.OldWipe = w.Wipe != NoWipe
	w.OpOld = w.Op != NoOperation
	if w.Report == CurrentReport {
		w.Report = OldReport
	}
}

// servedBy says that the operation is what a move is made for: without it something else would be done.
func (p *player) servedBy(w *World, x *exit) bool {
	without := *w
	without.Op = NoOperation
	d := p.m.decide(&without, p.wanted)
	return d.move == nil || d.move.rule != x.rule
}

// maxVisits is more than any server needs to come to rest while nothing happens.
const maxVisits = 64

// settle visits until nothing changes any more; false where that never comes.
func (p *player) settle(w *World) bool {
	p.moves = 0
	for range maxVisits {
		if !p.visit(w) {
			return true
		}
		if len(p.broken) > 0 {
			return true
		}
	}
	return false
}
