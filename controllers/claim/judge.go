// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/scheduler"
	"github.com/metalaw/metalaw/policies"
)

// facts is what one look at a claim is judged by.
type facts struct {
	claim *v1alpha1.ServerClaim
	// server is the one that serverRef names; nil where it names none, or one that does not exist.
	server *v1alpha1.Server
	// boot is the boot configuration with the claim's name; nil where there is none.
	boot *v1alpha1.ServerBootConfiguration
	// verdict is the scheduler's word on why there is no server; nil where it has none.
	verdict *scheduler.Verdict
	// binding says that the scheduler is writing a server for the claim.
	binding bool
	// turned is the last change of Ready that this process stored; the zero value where it stored none.
	turned turn
}

// standing is how far a claim is.
type standing struct {
	bound bool
	// reason and message are those of Bound while it is False, else of Ready.
	reason, message string
	// ready says that the machine is as the claim asks; stalled that somebody has to act; vanished that the server is gone.
	ready, stalled, vanished bool
	// silent says that nothing new is known, so that the conditions stay as they are.
	silent bool
	// unprepared says that nothing but the boot operator keeps the claim from being ready.
	unprepared bool
}

// judge is pure.
func judge(f facts) standing { return f.behindBMC(f.stands()) }

// stands is how far the claim is, without a look at whether its server's BMC can be used.
func (f facts) stands() standing {
	switch {
	case f.claim.Spec.ServerRef == nil:
		return f.waiting()
	case f.server == nil && wasBound(f.claim):
		return standing{reason: v1alpha1.ReasonServerVanished, stalled: true, vanished: true,
			message: fmt.Sprintf("the server %q, to which the claim was bound, no longer exists; the claim keeps its reference",
				f.claim.Spec.ServerRef.Name)}
	case f.server == nil:
		return f.waiting()
	case !agree(f.server, f.claim) && f.adoptable():
		return f.adopting()
	case !agree(f.server, f.claim) && wasBound(f.claim):
		return f.lost()
	case !agree(f.server, f.claim):
		return f.waiting()
	case f.claim.Status.Phase != v1alpha1.PhaseBound && !f.reserved():
		if why := refusal(f.server); why != "" {
			return standing{reason: v1alpha1.ReasonBootConfigurationRefused, message: why, stalled: true}
		}
		return standing{reason: v1alpha1.ReasonReserving, message: because("a server was found and is being reserved", Obstacle(f.server))}
	}
	return f.running()
}

// agree says that both references and the UID agree and that no release is recorded.
func agree(server *v1alpha1.Server, c *v1alpha1.ServerClaim) bool {
	return policies.Bound(server, c) && server.Annotations[v1alpha1.ReleasedClaimAnnotation] != string(c.UID)
}

// adoptable says that the claim is Bound by the word of a backup or of another operator, and that its server names it as it
// names the server. Its clients must not see it lose what it is about to be given back.
func (f facts) adoptable() bool {
	return f.claim.Status.Phase == v1alpha1.PhaseBound && policies.RelationOf(f.server, f.claim) == policies.Adoptable
}

func (f facts) adopting() standing {
	s := standing{bound: true, reason: v1alpha1.ReasonAdopting, message: "its UID is about to be recorded on the server"}
	if f.verdict != nil {
		s.message += "; it is not yet, because " + f.verdict.Message
	}
	return s
}

// wasBound says that the claim had its server when it was last judged, or had lost it by then and did not get it back.
func wasBound(c *v1alpha1.ServerClaim) bool {
	if c.Status.Phase == v1alpha1.PhaseBound || meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionServerMissing) {
		return true
	}
	told := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionBound)
	return told != nil && told.Status == metav1.ConditionFalse &&
		(told.Reason == v1alpha1.ReasonBindingLost || told.Reason == v1alpha1.ReasonServerVanished)
}

// lost says what became of the server of a claim that was bound. It stands in the place of the scheduler's word, which
// counts servers and knows nothing of a machine that the claim had.
func (f facts) lost() standing {
	s := standing{reason: v1alpha1.ReasonBindingLost}
	name, ref := f.server.Name, f.server.Spec.ServerClaimRef
	switch {
	case policies.RelationOf(f.server, f.claim) == policies.Adoptable:
		s.message = fmt.Sprintf("the server %q names this claim, and is being taken over", name)
	case v1alpha1.BindingEnded(f.server):
		s.message = fmt.Sprintf("the server %q was released, and what the claim had on it goes; "+
			"the claim gets the machine again once it is Available", name)
	case ref != nil && (ref.Namespace != f.claim.Namespace || ref.Name != f.claim.Name):
		s.stalled = true
		s.message = fmt.Sprintf("the server %q, to which the claim was bound, is held by another claim; "+
			"serverRef cannot be changed, so delete this claim and create another", name)
	case f.server.Status.State == v1alpha1.StateAvailable:
		s.message = fmt.Sprintf("the server %q, to which the claim was bound, is free without what the claim had on it, "+
			"and can be had again", name)
	default:
		s.stalled = true
		s.message = fmt.Sprintf("the server %q no longer refers to this claim: it was deleted and found again, or its "+
			"spec.serverClaimRef was cleared. Nothing is booted for the claim. To have the machine back with its data, let an "+
			"operator write the claim into spec.serverClaimRef of the server%s. To give the data up, delete the claim and %s",
			name, comingBack(f.server), givingUp(f.server))
	}
	return s
}

// comingBack says what else it takes, by the state of the server, once the claim is written on it.
func comingBack(s *v1alpha1.Server) string {
	switch s.Status.State { //nolint:exhaustive // the others look for their place by themselves
	case v1alpha1.StateError:
		return " and then retry it (metalaw server retry)"
	case v1alpha1.StateParked:
		return " and then unpark it (metalaw server unpark)"
	case v1alpha1.StateDecommissioned:
		return " and then take it back into service (metalaw server recommission)"
	}
	return ""
}

// givingUp says what an operator does with a server whose claim is gone without a release, by what its state takes.
func givingUp(s *v1alpha1.Server) string {
	const release = "release the server (metalaw server release), then retry it (metalaw server retry)"
	switch s.Status.State { //nolint:exhaustive // the others pass by themselves
	case v1alpha1.StateReserved, v1alpha1.StateReleased:
		return "let an operator release the server (metalaw server release)"
	case v1alpha1.StateError:
		return "let an operator " + release
	case v1alpha1.StateObserving:
		return fmt.Sprintf("let an operator take the machine over, which switches it off where it may (annotation %s=%s on the server); "+
			"should it stop in Error then, let them %s", v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver, release)
	case v1alpha1.StateParked:
		return "let an operator unpark the server; should it stop in Error then, let them " + release
	case v1alpha1.StateDecommissioned:
		return "leave the server as it is: it is out of service"
	}
	return fmt.Sprintf("wait until the server, which is in state %s, has come to rest; should it stop in Error, let an operator %s",
		cmp.Or(s.Status.State, "unknown"), release)
}

// reserved says that everything is in place that a client may rely on once the phase is Bound. What is bound stays bound
// while both references agree, also when its server goes to maintenance and comes back.
func (f facts) reserved() bool {
	ref := f.server.Spec.BootConfigurationRef
	return f.server.Status.State == v1alpha1.StateReserved && f.bootIsOurs() &&
		ref != nil && ref.Namespace == f.boot.Namespace && ref.Name == f.boot.Name
}

func (f facts) bootIsOurs() bool { return f.boot != nil && metav1.IsControlledBy(f.boot, f.claim) }

// waiting says why there is no server.
func (f facts) waiting() standing {
	if f.verdict != nil {
		return standing{reason: f.verdict.Reason, message: f.verdict.Message, stalled: f.verdict.IsFinal()}
	}
	if len(f.claim.Status.Conditions) > 0 {
		return standing{silent: true}
	}
	return standing{reason: v1alpha1.ReasonPending, message: "waits for its turn"}
}

// running says whether the machine of a bound claim is as the claim asks.
func (f facts) running() standing {
	s := standing{bound: true, reason: v1alpha1.ReasonBooting}
	wanted, power := v1alpha1.PowerState(f.claim.Spec.Power), f.server.Status.PowerState
	trouble := troubleOf(f.server)
	switch {
	case trouble != "":
		s.stalled, s.reason = true, v1alpha1.ReasonServerHalted
		s.message = fmt.Sprintf("nothing is done for the server, and what is known of it may not hold: its condition %s is True", trouble)
	case f.server.Status.State != v1alpha1.StateReserved:
		s.reason, s.message = v1alpha1.ReasonServerNotReserved, "the server is in state "+string(cmp.Or(f.server.Status.State, "unknown"))
	case wanted == v1alpha1.PowerStateOff && power != wanted && power != v1alpha1.PowerStateUnknown: // Off waits for no boot
		s.reason, s.message = v1alpha1.ReasonPoweringOff, but(fmt.Sprintf("Off is asked for, and the BMC still says %s", power), f.server)
	case f.bootWaits(&s):
	case power == v1alpha1.PowerStateUnknown:
		s.reason, s.message = v1alpha1.ReasonPowerUnknown, fmt.Sprintf("the server's BMC does not say whether it is on; %s is asked for", wanted)
	case power != wanted:
		s.message = but(fmt.Sprintf("the server is not %s yet", wanted), f.server)
	case wanted == v1alpha1.PowerStateOff:
		s.ready, s.reason, s.message = true, v1alpha1.ReasonPoweredOff, "the server is off, as asked"
	case !policies.BootedForClaim(f.server):
		s.stalled, s.reason = true, v1alpha1.ReasonSwitchedOnByHand
		s.message = "the machine was switched on, not by the manager, before it was booted for the claim, and it runs what it found. " +
			"To have it booted, set spec.power to Off, and to On once it is off"
	default:
		s.ready, s.reason, s.message = true, v1alpha1.ReasonRunning, "the BMC says On, and the boot configuration is as the claim asks"
		if f.changedSinceBoot() {
			s.message += "; it was changed after the machine was switched on, which uses the change at its next boot"
		}
	}
	return s
}

// bootWaits says that the boot configuration is not as the claim asks, or not prepared, and tells why.
func (f facts) bootWaits(s *standing) bool {
	boot := policies.BootFactsOf(f.boot)
	switch {
	case !f.bootFollows() && refusal(f.server) != "":
		s.stalled, s.reason, s.message = true, v1alpha1.ReasonBootConfigurationRefused, refusal(f.server)
	case !f.bootFollows() && len(f.changed()) > 0:
		s.stalled, s.reason, s.message = true, v1alpha1.ReasonBootConfigurationChanged, changedWords(f.boot, f.changed())
	case !f.bootFollows():
		s.message = but("the boot configuration is being written", f.server)
	case boot.State == string(v1alpha1.ServerBootConfigurationStateError):
		s.unprepared, s.reason = true, v1alpha1.ReasonBootError
		s.message = bootErrorWords(f.boot)
	case !boot.Ready:
		s.unprepared, s.message = true, unpreparedWords(f.boot)
	default:
		return false
	}
	return true
}

// hindrance says what keeps the server from doing what its claim asks for, as far as the claim's owner can or has to know;
// empty where nothing is known to.
func hindrance(s *v1alpha1.Server) string {
	if held := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionWithheld); held != nil && held.Status == metav1.ConditionTrue {
		return HeldBack(held.Reason)
	}
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return ""
	}
	switch ready.Reason {
	case v1alpha1.ReasonBootOverrideIgnored:
		return "its BMC ignores what the machine is to boot from, so that it is not switched on; " +
			"see condition Ready of the Server, reason " + ready.Reason
	case v1alpha1.ReasonBootConfigurationTaken:
		return "a ServerBootConfiguration of the claim's name exists and does not belong to the claim; delete it, or claim under another name"
	}
	return ""
}

// Obstacle says what keeps a server from being reserved for the claim that is written on it, in words for that claim's owner; empty
// where nothing is known to.
func Obstacle(s *v1alpha1.Server) string {
	if hindrance := cmp.Or(refusal(s), hindrance(s)); hindrance != "" {
		return hindrance
	}
	if trouble := troubleOf(s); trouble != "" {
		return "nothing is done for it while its condition is " + trouble
	}
	if reason := unreachable(s); reason != "" {
		return fmt.Sprintf("its BMC cannot be used (%s)", reason)
	}
	switch power := s.Status.PowerState; {
	case s.Status.State != v1alpha1.StateAvailable || power == v1alpha1.PowerStateOff:
		return ""
	case power == v1alpha1.PowerStateUnknown:
		return "its BMC does not say whether it is on"
	default:
		return fmt.Sprintf("its BMC says %s, and it has to be Off first", power)
	}
}

// unreachable is the reason for which a server's BMC cannot be used; empty where it can, or nobody has said.
func unreachable(s *v1alpha1.Server) string {
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionBMCReachable); c != nil && c.Status == metav1.ConditionFalse {
		return c.Reason
	}
	return ""
}

// but adds what is in the way, or else what the server waits for.
func but(message string, s *v1alpha1.Server) string {
	return because(message, cmp.Or(hindrance(s), waitsFor(s)))
}

// waitsFor says what a reserved server waits for, in words for its claim's owner; empty where it has said nothing.
func waitsFor(s *v1alpha1.Server) string {
	if ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady); ready != nil &&
		ready.Status == metav1.ConditionFalse && ready.Reason == v1alpha1.ReasonRequestFailed {
		return "its BMC did not do what it was asked for, and is asked again; see condition Ready of the Server"
	}
	if meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionPoweringOn) {
		return "its BMC was asked to switch it on, and does not show that yet"
	}
	if meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionWaitingForPowerOff) {
		return "its operating system was asked to shut down or its BMC to switch it off, and that does not show yet"
	}
	return ""
}

func because(message, cause string) string {
	if cause == "" {
		return message
	}
	return message + ": " + cause
}

// maxCause bounds what is quoted of a boot service.
const maxCause = 300

// bootErrorWords quotes what the boot service says of a boot configuration that is the claim's own, in the claim's namespace,
// so that its owner reads nothing here that they could not read there.
func bootErrorWords(boot *v1alpha1.ServerBootConfiguration) string {
	const said = "the boot service reports an error"
	var causes []string
	for _, c := range boot.Status.Conditions {
		if c.Status == metav1.ConditionFalse && c.Message != "" && c.Type != v1alpha1.ConditionBootStateReceived {
			causes = append(causes, fmt.Sprintf("%s: %s", c.Type, loop.Shortened(c.Message, maxCause)))
		}
	}
	slices.Sort(causes)
	if len(causes) == 0 {
		return said + "; see the conditions of the ServerBootConfiguration of the same name"
	}
	return said + " in the ServerBootConfiguration of the same name: " + strings.Join(causes, "; ")
}

// unpreparedWords names the boot configuration that the boot operator has not prepared.
func unpreparedWords(boot *v1alpha1.ServerBootConfiguration) string {
	what := "ServerBootConfiguration " + boot.Namespace + "/" + boot.Name
	if boot.Status.State == v1alpha1.ServerBootConfigurationStateReady {
		return "the boot operator has not prepared the last change of " + what
	}
	return fmt.Sprintf("the boot operator has not prepared %s, which is %s", what,
		cmp.Or(boot.Status.State, v1alpha1.ServerBootConfigurationStatePending))
}

// HeldBack says by what something is held back, by the reason of a condition Withheld, and what ends that. The names of freezes and
// budgets, and the words of those who wrote them, are left to the people who run the fleet.
func HeldBack(reason string) string {
	until := map[string]string{
		v1alpha1.ReasonFrozen:          "by a freeze, until those who run the fleet lift it or it runs out",
		v1alpha1.ReasonBreakerTripped:  "by the fleet's breaker, until those who run the fleet acknowledge that it tripped",
		v1alpha1.ReasonBudgetExhausted: "by a budget, until another machine is done",
		v1alpha1.ReasonStarting:        "until the manager, which has started, has seen the fleet",
		v1alpha1.ReasonObserveOnly:     "by --observe-only, until the manager runs without it",
	}[reason]
	if until == "" {
		return fmt.Sprintf("that is held back at present (%s)", reason)
	}
	return fmt.Sprintf("that is held back %s (%s)", until, reason)
}
