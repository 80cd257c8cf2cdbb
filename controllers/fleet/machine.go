// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// machine is what budgets and the breaker need to know of one server. All of it is read from the stored object, so that a
// manager that comes after counts what its predecessor did.
type machine struct {
	labels map[string]string
	state  string
	// entered is when it last entered each state, as far as its history goes back.
	entered map[string]time.Time
	// began is when each action was last begun.
	began map[policyv1alpha1.FleetAction]time.Time
	// wiping says that a wipe is prepared or under way.
	wiping bool
	// withheld is why an effect of its state is held back; empty where none is.
	withheld string
}

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

func machineOf(s *v1alpha1.Server) machine {
	m := machine{labels: s.Labels, state: string(s.Status.State)}
	if withheld := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionWithheld); withheld != nil {
		m.withheld = withheld.Reason
	}
	if l := s.Status.Lifecycle; l != nil {
		m.entered = entries(m.state, l)
		m.wiping = l.Credential != nil && l.Credential.Purpose == v1alpha1.ProbePurposeWipe
		if l.Request != nil {
			m.begin(powerActions[l.Request.Action], l.Request.AskedAt.Time)
		}
	}
	if op := s.Status.Operation; op != nil && op.State != v1alpha1.OperationPending && op.State != v1alpha1.OperationRefused {
		m.begin(operationActions[op.Name].budgeted(), op.StartedAt.Time)
	}
	return m
}

// entries is when a server last entered each state. A state that it has left again within a breaker's window counts too.
func entries(state string, l *v1alpha1.LifecycleStatus) map[string]time.Time {
	all := map[string]time.Time{}
	for i := range l.History {
		if move := &l.History[i]; move.At.After(all[string(move.To)]) {
			all[string(move.To)] = move.At.Time
		}
	}
	all[state] = l.EnteredAt.Time
	return all
}

// recall takes over what was begun before: the stored object keeps the last request alone.
func (m *machine) recall(was *machine) {
	for action, at := range was.began {
		m.begin(action, at)
	}
}

func (m *machine) begin(action policyv1alpha1.FleetAction, at time.Time) {
	if action == "" || at.Before(m.began[action]) {
		return
	}
	if m.began == nil {
		m.began = map[policyv1alpha1.FleetAction]time.Time{}
	}
	m.began[action] = at
}

// undergoes says whether a machine counts against a budget now, and for how much longer; 0 where that cannot be told.
func (m *machine) undergoes(action policyv1alpha1.FleetAction, window time.Duration, now time.Time) (bool, time.Duration) {
	if action == policyv1alpha1.ActionWipe {
		return m.wiping, 0
	}
	left := m.began[action].Add(window).Sub(now)
	return left > 0, max(0, left)
}
