// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// forcing is what it takes to force a server into a state.
type forcing struct {
	decision engine.Decision
	// release says that the move records a release by hand.
	release bool
	// overrides are the safety rules that are set aside by that.
	overrides []string
}

// planForce finds the mildest way to force the server into a state in which it may stay: as it is; with its release
// recorded by hand and its claim let go; and called clean besides. The second return says why there is none.
func (v *scope) planForce(to engine.State, override bool) (forcing, string) {
	from := engine.State(v.server.Status.State)
	switch {
	case !v.bundle.Lifecycle.Defines(to):
		return forcing{}, fmt.Sprintf("the policy defines no state %q (it defines %s)", to, joined(v.bundle.Lifecycle.States()))
	case to == from:
		return forcing{}, fmt.Sprintf("the server is in %s already", to)
	}
	plain, why := v.forced(to, false, false)
	if why == "" {
		return plain, ""
	}
	if !override {
		return forcing{}, why + v.hint(to, why)
	}
	return v.forcedAside(to)
}

// forcedAside looks for the mildest way with safety rules set aside, and says why there is none.
func (v *scope) forcedAside(to engine.State) (f forcing, why string) {
	for _, clean := range []bool{false, true} {
		if f, why = v.forced(to, true, clean); why == "" {
			f.overrides = v.overridden(clean)
			return f, ""
		}
	}
	return forcing{}, why
}

// hint says what is to be had by setting safety rules aside, where that helps or fails for another cause.
func (v *scope) hint(to engine.State, why string) string {
	switch _, still := v.forcedAside(to); still {
	case "":
		return "; see whether that is what you want to set aside, and ask with " + v1alpha1.ForceOverrideAnnotation + "=true"
	case why:
		return ""
	default:
		return "; nor would it be possible with safety rules set aside: " + still
	}
}

// asForced is the server with what is taken from it before it is forced: its holder, its fear of data, and that it is nobody's.
func (v *scope) asForced(release, clean bool) *v1alpha1.Server {
	s := v.server.DeepCopy()
	if release && v.hasHolder() {
		letGo(s, v.now)
	}
	clears := []string{policies.MarkStranger}
	if clean {
		clears = append(clears, policies.MarkDirty)
	}
	s.Status.Lifecycle.Marks = status.Marks(s.Status.Lifecycle.Marks, engine.Decision{Clears: clears})
	s.Status.Operation = nil // it is what is asked about
	return s
}

// forced looks at the server as it would be in the state, and says why it could not be there or would not stay.
func (v *scope) forced(to engine.State, release, clean bool) (forcing, string) {
	s := v.asForced(release, clean)
	o := policies.Observation{Server: s, Now: v.now, Settings: v.settings(), System: v.systemReading(),
		Inventory: policies.WithoutStranger(v.inventory)}
	if o.System.Identity == policies.IdentityOther {
		o.System.Identity = policies.IdentityUnknown // the machine of this server is not there: it halts where its state asks for something
	}
	if s.Spec.ServerClaimRef != nil {
		o.Claim = v.claim
	}
	entered := v.bundle.Lifecycle.Enter(o.Facts(), to)
	if entered.Halt != nil {
		return forcing{}, entered.Halt.Rule + ": " + entered.Halt.Message
	}
	ours, taken := gates.BootsOurs(v.bundle, to), release && v.facts.Claim.Bound
	s.Status.State = v1alpha1.ServerState(to)
	s.Status.Lifecycle.Entry++
	s.Status.Lifecycle.Marks = status.Marks(s.Status.Lifecycle.Marks, entered)
	facts := o.Facts()
	if ours && v.facts.Maintenance.Granted {
		return forcing{}, fmt.Sprintf("in %s it boots an image of ours, and it is handed to a maintenance: "+
			"clear spec.serverMaintenanceRef first, when that is over", to)
	}
	switch there := v.bundle.Lifecycle.Decide(facts); {
	case there.Halt != nil:
		return forcing{}, there.Halt.Rule + ": " + there.Halt.Message
	case there.Moves():
		return forcing{}, fmt.Sprintf("%s would lead it from there to %s at once", there.Rule, there.To)
	}
	if why := cmp.Or(v.inTheWay(to, ours, taken), v.deadEnd(s, facts)); why != "" {
		return forcing{}, why
	}
	if ours || taken {
		entered.Groups = []string{"bmc"} // it is made on a fresh reading only
	}
	entered.From, entered.Rule, entered.Revision = engine.State(v.server.Status.State), v1alpha1.RuleForced, v.bundle.Revision
	if clean {
		entered.Clears = append(entered.Clears, policies.MarkDirty)
	}
	return forcing{decision: entered, release: release && v.hasHolder()}, ""
}

// inTheWay says what about the machine keeps it from being forced to a state that boots an image of ours or offers it to
// claims, or from being taken from a claim that exists; empty where nothing does.
func (v *scope) inTheWay(to engine.State, ours, taken bool) string {
	const remedy = "have it switched off first, by its claim or by parking it"
	switch {
	case to == engine.State(v1alpha1.StateAvailable) && v.facts.BMC.Identity == policies.IdentityOther:
		return fmt.Sprintf("%s offers the server to claims, and its BMC answers for another machine than the one that the server names", to)
	case ours && v.notOff():
		return fmt.Sprintf("in %s it boots an image of ours, and its power is %s: %s", to, v.facts.BMC.Power, remedy)
	case taken && v.notOff():
		return fmt.Sprintf("the claim %s/%s exists, and its machine's power is %s: %s", v.claim.Namespace, v.claim.Name, v.facts.BMC.Power, remedy)
	}
	return ""
}

// deadEnd says why no rule would ever lead a server from the state that it is in, where each takes a release that there
// cannot be for a server that nobody held; empty where one may. A state that nothing leads from is one to stay in.
func (v *scope) deadEnd(s *v1alpha1.Server, f *policies.Facts) string {
	l, at := v.bundle.Lifecycle, engine.State(s.Status.State)
	free := []string{"server.claimRefSet", "claim.bound", "claim.binding"}
	if hasHolder(s) || !l.MayLeave(at, f, free...) || l.MayLeave(at, f, append(free, "claim.released")...) {
		return ""
	}
	return fmt.Sprintf("nobody is known to have held this server, so that there is nothing to keep in %s and nothing to release, "+
		"and no rule would ever lead it from there", s.Status.State)
}

// notOff says that the machine is seen not to be off, or that its BMC does not tell. What an older reading says counts for
// nothing: the move waits for a fresh one, on which it is judged again.
func (v *scope) notOff() bool {
	if v.reading.Tried && v.facts.BMC.Identity != policies.IdentitySame {
		return true
	}
	return v.fresh() && !v.shows(redfish.PowerOff)
}

func (v *scope) hasHolder() bool { return hasHolder(v.server) }

// hasHolder says that a claim holds a server, or held it and may have left data.
func hasHolder(s *v1alpha1.Server) bool {
	return s.Spec.ServerClaimRef != nil || s.Annotations[v1alpha1.ClaimUIDAnnotation] != "" ||
		slices.Contains(s.Status.Lifecycle.Marks, policies.MarkDirty)
}

// overridden names the safety rules that letting the holder go, or calling the server clean, sets aside here.
func (v *scope) overridden(clean bool) []string {
	var all []string
	if !v.facts.Claim.Released && v.hasHolder() {
		all = append(all, policies.RuleAbsenceIsNotEvidence)
	}
	if v.facts.Claim.Bound {
		all = append(all, policies.RuleNeverWipeClaimed)
	}
	if v.server.Spec.ServerClaimRef != nil && v.server.Spec.ReclaimPolicy == v1alpha1.ReclaimPolicyRetain {
		all = append(all, policies.RuleNeverWipeRetained)
	}
	if clean && slices.Contains(v.server.Status.Lifecycle.Marks, policies.MarkDirty) {
		all = append(all, policies.RuleClearOnlyOnProof)
	}
	return all
}

// letGo records on a server that its holder was released by hand, and takes the claim's reference off.
func letGo(s *v1alpha1.Server, now time.Time) {
	holder := s.Annotations[v1alpha1.ClaimUIDAnnotation]
	if holder == "" {
		holder = "by-hand-" + string(uuid.NewUUID())
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ClaimUIDAnnotation, holder)
	}
	if s.Annotations[v1alpha1.ReleasedClaimAnnotation] != holder {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ReleasedClaimAnnotation, holder)
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ReleasedAtAnnotation, now.UTC().Format(time.RFC3339))
	}
	s.Spec.ServerClaimRef = nil
}

// admitForce takes in the wish to force the server into a state, with what it sets aside, before anything is done.
func (v *scope) admitForce() {
	s := v.server
	to := s.Annotations[v1alpha1.ForceToAnnotation]
	override := s.Annotations[v1alpha1.ForceOverrideAnnotation] == "true"
	f, why := v.planForce(engine.State(to), override)
	if why != "" {
		v.note(reasonOperationRefused, fmt.Sprintf("force to %s: %s", to, why))
		v.dropRequest()
		return
	}
	v.beginOperation(v1alpha1.OperationForce)
	op := s.Status.Operation
	op.To, op.Override, op.Overrides = v1alpha1.ServerState(to), override, f.overrides
}

// decideForce is the move that an operation forces, once it is recorded. One that would set aside more than was recorded
// is not made.
func (v *scope) decideForce() (engine.Decision, bool) {
	op := v.server.Status.Operation
	if op == nil || !pastRules(op.Name) || op.State != v1alpha1.OperationPending || v.asked() == op.Name || v.unconfirmed {
		return engine.Decision{}, false
	}
	f, why := v.planAgain(op)
	for _, rule := range f.overrides {
		if !slices.Contains(op.Overrides, rule) {
			why = fmt.Sprintf("things have changed: it would set aside %s as well", rule)
		}
	}
	v.forcing, v.forceRefused = &f, why
	return f.decision, why == ""
}

// recordForce carries out what a forced move sets aside, and ends the operation.
func (v *scope) recordForce(d engine.Decision) {
	op := v.server.Status.Operation
	if v.forceRefused != "" {
		v.finish(v1alpha1.OperationFailed, v.forceRefused)
		return
	}
	if v.forcing == nil || d.Rule != v1alpha1.RuleForced {
		return
	}
	if v.forcing.release {
		letGo(v.server, v.now)
	}
	last := &v.server.Status.Lifecycle.History[len(v.server.Status.Lifecycle.History)-1]
	last.By, last.Reason, last.Overrides = op.By, op.Reason, op.Overrides
	words := fmt.Sprintf("forced to %s", d.To)
	if len(op.Overrides) > 0 {
		words += ", setting aside " + strings.Join(op.Overrides, ", ")
	}
	v.finish(v1alpha1.OperationSucceeded, words)
}

func joined(states []engine.State) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}
