// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
)

// machine is what budgets and the breaker need to know of one server. What was begun is read from the stored objects, so
// that a manager that comes after counts what its predecessor did; granted is what is not stored yet.
type machine struct {
	labels map[string]string
	state  string
	// uuid names the machine's inventory, in one of its spellings.
	uuid string
	// entered is when it last entered each state, as far as its history goes back.
	entered map[string]moment
	// began is when each power change was last recorded as begun, just before the BMC was asked.
	began map[policyv1alpha1.FleetAction]moment
	// preparing says that a wipe is prepared or under way.
	preparing bool
	// maintained says that it is handed to a maintenance.
	maintained bool
	// erasing is until when its agent counts as erasing disks, whatever its server's state is; zero where none does.
	erasing time.Time
	// granted is what was allowed and is about to be recorded.
	granted map[policyv1alpha1.FleetAction]grant
	// withheld is why an effect of its state is held back; empty where none is.
	withheld string
}

// grant is an action that was allowed.
type grant struct {
	at time.Time
	// before is when the action was recorded before it was allowed; a later record is that of the grant.
	before moment
}

// moment is when something was recorded: by the wall clock of the process that did, and in counted time, zero for none.
type moment struct {
	at      time.Time
	counted counted.Time
}

func momentOf(at metav1.MicroTime, c metav1.Duration) moment { return moment{at.Time, counted.From(c)} }

// after says that a record was made after another.
func (m moment) after(other moment) bool {
	if m.counted != 0 && other.counted != 0 {
		return m.counted > other.counted
	}
	return m.at.After(other.at)
}

// grantTime is how long a grant counts at most that no record follows: the write that was to record it failed.
const grantTime = time.Minute

var powerActions = map[v1alpha1.PowerAction]policyv1alpha1.FleetAction{
	v1alpha1.PowerActionOn:       policyv1alpha1.ActionPowerOn,
	v1alpha1.PowerActionForceOff: policyv1alpha1.ActionForcedOff,
}

var operationActions = map[string]Action{
	v1alpha1.OperationGracefulRestartServer: PowerCycle,
	v1alpha1.OperationHardRestartServer:     PowerCycle,
	v1alpha1.OperationPowerCycleServer:      PowerCycle,
	v1alpha1.OperationForceOffServer:        ForcedOff,
	v1alpha1.OperationForceOnServer:         PowerOn,
}

// OfOperation is the action that an operation amounts to; Record for one that reaches no machine.
func OfOperation(name string) Action { return operationActions[name] }

func machineOf(s *v1alpha1.Server) *machine {
	m := &machine{labels: s.Labels, state: string(s.Status.State), uuid: s.Spec.SystemUUID,
		maintained: s.Spec.ServerMaintenanceRef != nil || s.Status.State == v1alpha1.StateMaintenance}
	if withheld := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionWithheld); withheld != nil {
		m.withheld = withheld.Reason
	}
	if l := s.Status.Lifecycle; l != nil {
		m.entered = entries(m.state, l)
		m.preparing = l.Credential != nil && l.Credential.Purpose == v1alpha1.ProbePurposeWipe
		for _, b := range l.Begun {
			m.begin(policyv1alpha1.FleetAction(b.Action), momentOf(b.At, b.Counted))
		}
		if l.Request != nil && !l.Request.Uncounted {
			m.begin(powerActions[l.Request.Action], momentOf(l.Request.AskedAt, l.Request.AskedCounted))
		}
	}
	if op := s.Status.Operation; op != nil && op.BegunAt != nil {
		m.begin(operationActions[op.Name].budgeted(), moment{at: op.BegunAt.Time})
	}
	return m
}

// entries is when a server last entered each state. A state that it has left again within a breaker's window counts too.
// One that was taken over in the state that it had did not enter it then: a fleet that is adopted has not failed. Neither does a move
// count that was made for hidden storage alone: a new setting finds it on many servers at once.
func entries(state string, l *v1alpha1.LifecycleStatus) map[string]moment {
	all := map[string]moment{}
	counts := l.Rule != v1alpha1.RuleAdopted
	for i := range l.History {
		move := &l.History[i]
		at := momentOf(move.At, move.Counted)
		if move.Rule != v1alpha1.RuleAdopted && !move.Uncounted && at.after(all[string(move.To)]) {
			all[string(move.To)] = at
		}
		counts = counts && !(move.Uncounted && move.Entry == l.Entry)
	}
	if counts {
		all[state] = momentOf(l.EnteredAt, l.EnteredCounted)
	}
	return all
}

// inherit takes over from what was known of the machine what its stored object does not show: grants that are not recorded
// yet, and what was begun under a status that was lost.
func (m *machine) inherit(was *machine) {
	for action, at := range was.began {
		m.begin(action, at)
	}
	for action, g := range was.granted {
		if !m.shows(action, g) {
			m.allow(action, g)
		}
	}
}

// shows says that the stored object records what was granted. The time of the record says nothing about that: it is when
// the scope began that asked for the grant.
func (m *machine) shows(action policyv1alpha1.FleetAction, g grant) bool {
	if action == policyv1alpha1.ActionWipe {
		return m.preparing
	}
	return m.began[action].after(g.before)
}

func (m *machine) allow(action policyv1alpha1.FleetAction, g grant) {
	if m.granted == nil {
		m.granted = map[policyv1alpha1.FleetAction]grant{}
	}
	m.granted[action] = g
}

// wiping says that a wipe of the machine is prepared or under way.
func (m *machine) wiping() bool { return m.preparing || !m.erasing.IsZero() }

func (m *machine) begin(action policyv1alpha1.FleetAction, at moment) {
	if action == "" || !at.after(m.began[action]) { // the same may come once more, without its count
		return
	}
	if m.began == nil {
		m.began = map[policyv1alpha1.FleetAction]moment{}
	}
	m.began[action] = at
}

// undergoes says whether a machine counts against a budget for an action, and until when; the zero time where that cannot
// be told. It may be over already. A nil clock goes by the times of the records.
func (m *machine) undergoes(action policyv1alpha1.FleetAction, window time.Duration,
	clock *counted.Clock) (until time.Time, counts bool) {
	if action == policyv1alpha1.ActionMaintenance {
		return time.Time{}, m.maintained
	}
	if action == policyv1alpha1.ActionWipe {
		if m.preparing {
			return time.Time{}, true
		}
		until, window = m.erasing, grantTime
	} else if began, ok := m.began[action]; ok {
		until = clock.Moment(began.counted, began.at).Add(window)
	}
	if g, ok := m.granted[action]; ok {
		if end := g.at.Add(min(window, grantTime)); end.After(until) {
			until = end
		}
	}
	return until, !until.IsZero()
}
