// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// Move is what it takes to force a server into a state.
type Move struct {
	Decision engine.Decision
	// Refused says why the move is not made; empty where it is.
	Refused string
	// release says that the move records a release by hand.
	release bool
	// overrides are the safety rules that are set aside by that.
	overrides []string
}

// Made says that the move is made; a nil one is not.
func (m *Move) Made() bool { return m != nil && m.Refused == "" }

// Force is the move that an operation forces, once it is recorded; nil where none does. One that would set aside more than was
// recorded is refused.
func Force(in Input) *Move {
	d := &decision{Input: in, server: in.Server}
	op := in.Server.Status.Operation
	if op == nil || !pastRules(op.Name) || op.State != v1alpha1.OperationPending || Asked(in.Server) == op.Name || in.Unconfirmed {
		return nil
	}
	move, why := d.plan(op)
	for _, rule := range move.overrides {
		if !slices.Contains(op.Overrides, rule) {
			why = fmt.Sprintf("things have changed: it would set aside %s as well", rule)
		}
	}
	move.Refused = why
	return &move
}

// planForce finds the mildest way to force the server into a state in which it may stay: as it is; with its release
// recorded by hand and its claim let go; and called clean besides. The second return says why there is none.
func (d *decision) planForce(to engine.State, override bool) (Move, string) {
	from := engine.State(d.server.Status.State)
	switch {
	case !d.Bundle.Lifecycle.Defines(to):
		return Move{}, fmt.Sprintf("the policy defines no state %q (it defines %s)", to, joined(d.Bundle.Lifecycle.States()))
	case to == from:
		return Move{}, fmt.Sprintf("the server is in %s already", to)
	}
	plain, why := d.forced(to, false, false)
	if why == "" {
		return plain, ""
	}
	if !override {
		return Move{}, why + d.hint(to, why)
	}
	return d.forcedAside(to)
}

// forcedAside looks for the mildest way with safety rules set aside, and says why there is none.
func (d *decision) forcedAside(to engine.State) (m Move, why string) {
	for _, clean := range []bool{false, true} {
		if m, why = d.forced(to, true, clean); why == "" {
			m.overrides = d.overridden(clean)
			return m, ""
		}
	}
	return Move{}, why
}

// hint says what is to be had by setting safety rules aside, where that helps or fails for another cause.
func (d *decision) hint(to engine.State, why string) string {
	switch _, still := d.forcedAside(to); still {
	case "":
		return "; see whether that is what you want to set aside, and ask with " + v1alpha1.ForceOverrideAnnotation + "=true"
	case why:
		return ""
	default:
		return "; nor would it be possible with safety rules set aside: " + still
	}
}

// asForced is the server with what is taken from it before it is forced: its holder, its fear of data, and that it is nobody's.
func (d *decision) asForced(release, clean bool) *v1alpha1.Server {
	s := d.server.DeepCopy()
	if release && hasHolder(d.server) {
		letGo(s, d.Now, d.NewID)
	}
	clears := []string{policies.MarkStranger}
	if clean {
		clears = append(clears, policies.MarkDirty)
	}
	s.Status.Lifecycle.Marks = engine.Decision{Clears: clears}.MarksAfter(s.Status.Lifecycle.Marks)
	s.Status.Operation = nil // it is what is asked about
	return s
}

// forced looks at the server as it would be in the state, and says why it could not be there or would not stay.
func (d *decision) forced(to engine.State, release, clean bool) (Move, string) {
	s := d.asForced(release, clean)
	o := policies.Observation{Server: s, Now: d.Now, CountedNow: d.CountedNow, WipeHeard: d.WipeHeard,
		Settings: d.Bundle.Settings, System: d.System, Inventory: policies.WithoutStranger(d.Inventory)}
	if o.System.Identity == policies.IdentityOther {
		o.System.Identity = policies.IdentityUnknown // the machine of this server is not there: it halts where its state asks for something
	}
	if s.Spec.ServerClaimRef != nil {
		o.Claim = d.Claim
	}
	entered := d.Bundle.Lifecycle.Enter(o.Facts(), to)
	if entered.Halt != nil {
		return Move{}, entered.Halt.Rule + ": " + entered.Halt.Message
	}
	ours, taken := BootsOurs(d.Bundle, to), release && d.Facts.Claim.Bound
	s.Status.State = v1alpha1.ServerState(to)
	s.Status.Lifecycle.Entry++
	s.Status.Lifecycle.Marks = entered.MarksAfter(s.Status.Lifecycle.Marks)
	facts := o.Facts()
	if ours && d.Facts.Maintenance.Granted {
		return Move{}, fmt.Sprintf("in %s it boots an image of ours, and it is handed to a maintenance: "+
			"clear spec.serverMaintenanceRef first, when that is over", to)
	}
	switch there := d.Bundle.Lifecycle.Decide(facts); {
	case there.Halt != nil:
		return Move{}, there.Halt.Rule + ": " + there.Halt.Message
	case there.Moves():
		return Move{}, fmt.Sprintf("%s would lead it from there to %s at once", there.Rule, there.To)
	}
	if why := cmp.Or(d.inTheWay(to, ours, taken), DeadEnd(d.Bundle, s, facts)); why != "" {
		return Move{}, why
	}
	if ours || taken {
		entered.Groups = []string{"bmc"} // it is made on a fresh reading only
	}
	entered.From, entered.Rule, entered.Revision = engine.State(d.server.Status.State), v1alpha1.RuleForced, d.Bundle.Revision
	if clean {
		entered.Clears = append(entered.Clears, policies.MarkDirty)
	}
	return Move{Decision: entered, release: release && hasHolder(d.server)}, ""
}

// inTheWay says what about the machine keeps it from being forced to a state that boots an image of ours or offers it to
// claims, or from being taken from a claim that exists; empty where nothing does.
func (d *decision) inTheWay(to engine.State, ours, taken bool) string {
	const remedy = "have it switched off first, by its claim or by parking it"
	switch {
	case to == engine.State(v1alpha1.StateAvailable) && d.Facts.BMC.Identity == policies.IdentityOther:
		return fmt.Sprintf("%s offers the server to claims, and its BMC answers for another machine than the one that the server names", to)
	case ours && d.NotOff:
		return fmt.Sprintf("in %s it boots an image of ours, and its power is %s: %s", to, d.Facts.BMC.Power, remedy)
	case taken && d.NotOff:
		return fmt.Sprintf("the claim %s/%s exists, and its machine's power is %s: %s", d.Claim.Namespace, d.Claim.Name, d.Facts.BMC.Power, remedy)
	}
	return ""
}

// DeadEnd says why no rule would ever lead a server from the state that it is in, where each takes a release that there
// cannot be for a server that nobody held; empty where one may. A state that nothing leads from is one to stay in.
func DeadEnd(b *bundle.Bundle, s *v1alpha1.Server, f *policies.Facts) string {
	l, at := b.Lifecycle, engine.State(s.Status.State)
	free := []string{"server.claimRefSet", "claim.bound", "claim.binding"}
	if hasHolder(s) || !l.MayLeave(at, f, free...) || l.MayLeave(at, f, append(free, "claim.released")...) {
		return ""
	}
	return fmt.Sprintf("no claim is known to have held this server, so %s has nothing to keep and nothing to release. "+
		"No rule would ever lead it from there", s.Status.State)
}

// BootsOurs says that a state boots the probe or the wipe image, now or once what that waits for has come.
func BootsOurs(b *bundle.Bundle, s engine.State) bool {
	return b.Lifecycle.Ensures(s, policies.EffectBootProbe) || b.Lifecycle.Ensures(s, policies.EffectBootWipe)
}

// hasHolder says that a claim holds a server, or held it and may have left data.
func hasHolder(s *v1alpha1.Server) bool {
	return s.Spec.ServerClaimRef != nil || s.Annotations[v1alpha1.ClaimUIDAnnotation] != "" ||
		slices.Contains(s.Status.Lifecycle.Marks, policies.MarkDirty)
}

// overridden names the safety rules that letting the holder go, or calling the server clean, sets aside here.
func (d *decision) overridden(clean bool) []string {
	var all []string
	if !d.Facts.Claim.Released && hasHolder(d.server) {
		all = append(all, policies.RuleAbsenceIsNotEvidence)
	}
	if d.Facts.Claim.Bound {
		all = append(all, policies.RuleNeverWipeClaimed)
	}
	if d.server.Spec.ServerClaimRef != nil && d.server.Spec.ReclaimPolicy == v1alpha1.ReclaimPolicyRetain {
		all = append(all, policies.RuleNeverWipeRetained)
	}
	if clean && slices.Contains(d.server.Status.Lifecycle.Marks, policies.MarkDirty) {
		all = append(all, policies.RuleClearOnlyOnProof)
	}
	return all
}

// letGo records on a server that its holder was released by hand, and takes the claim's reference off. A release by hand takes
// no grace, and its record says so. The time of a record that a claim's end made before stays.
func letGo(s *v1alpha1.Server, now time.Time, id string) {
	holder := s.Annotations[v1alpha1.ClaimUIDAnnotation]
	if holder == "" {
		holder = "by-hand-" + id
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ClaimUIDAnnotation, holder)
	}
	if s.Annotations[v1alpha1.ReleasedClaimAnnotation] != holder || s.Annotations[v1alpha1.ReleasedAtAnnotation] == "" {
		policies.RecordRelease(s, holder, now, 0)
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ReleasedCountedAnnotation, v1alpha1.ReleasedNoGrace)
	s.Spec.ServerClaimRef = nil
}

// admitMove takes in the wish to force the server into a state, with what it sets aside, before anything is done.
func (d *decision) admitMove(operation string) {
	op := &v1alpha1.OperationStatus{Name: operation, To: v1alpha1.StateAvailable}
	what := operation
	if operation == v1alpha1.OperationForce {
		op.To = v1alpha1.ServerState(d.server.Annotations[v1alpha1.ForceToAnnotation])
		op.Override = d.server.Annotations[v1alpha1.ForceOverrideAnnotation] == "true"
		what = fmt.Sprintf("force to %s", op.To)
	}
	move, why := d.plan(op)
	if why != "" {
		d.note(v1alpha1.ReasonOperationRefused, what+": "+why)
		d.dropRequest()
		return
	}
	d.beginOperation(operation)
	begun := d.server.Status.Operation
	begun.To, begun.Override, begun.Overrides = op.To, op.Override, move.overrides
}

// recordForce carries out what a forced move sets aside, and ends the operation.
func (d *decision) recordForce() {
	op := d.server.Status.Operation
	if d.Move != nil && d.Move.Refused != "" {
		d.finish(v1alpha1.OperationFailed, d.Move.Refused)
		return
	}
	if d.Move == nil || d.Decision.Rule != v1alpha1.RuleForced {
		return
	}
	if d.Move.release {
		letGo(d.server, d.Now, d.NewID)
	}
	last := &d.server.Status.Lifecycle.History[len(d.server.Status.Lifecycle.History)-1]
	last.By, last.Reason, last.Overrides = op.By, op.Reason, op.Overrides
	words := fmt.Sprintf("forced to %s", d.Decision.To)
	if len(op.Overrides) > 0 {
		words += ", setting aside " + strings.Join(op.Overrides, ", ")
	}
	d.finish(v1alpha1.OperationSucceeded, words)
}

// planDeclareClean is the forced move that offers a server whose status was lost. Unlike a force it lets no claim go, and knows no
// override: only the rule that asks for a proof is set aside.
func (d *decision) planDeclareClean() (Move, string) {
	if d.Holder != "" {
		return Move{}, "the claim " + d.Holder + " names this server; delete the claim, which has it wiped"
	}
	if why := policies.MayNotDeclareClean(d.server, d.Inventory); why != "" {
		return Move{}, why
	}
	to := engine.State(v1alpha1.StateAvailable)
	if !d.Bundle.Lifecycle.Defines(to) {
		return Move{}, fmt.Sprintf("the policy defines no state %s", to)
	}
	f, why := d.forced(to, false, true)
	f.overrides = []string{policies.RuleClearOnlyOnProof}
	return f, why
}

// plan plans the move of an operation, on what is known now.
func (d *decision) plan(op *v1alpha1.OperationStatus) (Move, string) {
	if op.Name == v1alpha1.OperationDeclareClean {
		return d.planDeclareClean()
	}
	return d.planForce(engine.State(op.To), op.Override || len(op.Overrides) > 0)
}
