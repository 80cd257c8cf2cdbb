// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/freeze"
)

// Action is something about to be done to a machine, or for one.
type Action uint8

const (
	// Record writes down what must be remembered; no machine notices. Only observe-only holds it back.
	Record Action = iota
	// Setting changes what a machine shows or boots: lights, boot order, boot configurations, overrides.
	Setting
	// PowerOn switches a machine on.
	PowerOn
	// Shutdown asks an operating system to stop.
	Shutdown
	// ForcedOff cuts the power.
	ForcedOff
	// AgentOff cuts the power of a machine that runs an agent of ours and nothing else. Freezes hold it back as ForcedOff; no
	// budget counts it, because no system of a tenant stops.
	AgentOff
	// PowerCycle restarts a machine.
	PowerCycle
	// Wipe prepares or begins the erasure of disks.
	Wipe
	// BMCRestart restarts a BMC, which its machine does not notice.
	BMCRestart
	// Maintenance hands a server to a maintenance, or takes the next step of one. The scheduler of maintenances counts its budgets.
	Maintenance
)

// String implements fmt.Stringer.
func (a Action) String() string {
	return [...]string{"record", "setting", "power-on", "shutdown", "forced power-off", "power-off of our agent",
		"power cycle", "wipe", "restart of the BMC", "maintenance"}[a]
}

// level is the mildest freeze that holds an action back; empty where none does.
func (a Action) level() policyv1alpha1.FreezeLevel {
	switch a {
	case Record:
		return ""
	case Setting, PowerOn, BMCRestart:
		return policyv1alpha1.FreezeAll
	case Maintenance:
		return policyv1alpha1.FreezeMaintenance
	default:
		return policyv1alpha1.FreezeDestructive
	}
}

// HeldBy says that a freeze of a level holds an action back.
func (a Action) HeldBy(level policyv1alpha1.FreezeLevel) bool {
	mildest := a.level()
	return mildest != "" && freeze.Strictness(level) >= freeze.Strictness(mildest)
}

// Uncached says that an action must not begin before an uncached read of the FleetControl lets it. A record reaches no
// machine. A setting is repeated at every turn, and undone easily.
func (a Action) Uncached() bool { return a != Record && a != Setting }

// budgeted is how the budgets name an action; empty where none counts it.
func (a Action) budgeted() policyv1alpha1.FleetAction {
	switch a {
	case PowerOn:
		return policyv1alpha1.ActionPowerOn
	case ForcedOff:
		return policyv1alpha1.ActionForcedOff
	case PowerCycle:
		return policyv1alpha1.ActionPowerCycle
	case Wipe:
		return policyv1alpha1.ActionWipe
	default:
		return ""
	}
}

// Begin notes in a lifecycle that a power change is about to be begun, for budgets to count whatever is asked for next. A
// wipe shows by its credential.
func Begin(l *v1alpha1.LifecycleStatus, action Action, at metav1.MicroTime, counted metav1.Duration) {
	if what := action.budgeted(); what != "" && action != Wipe {
		l.Begin(string(what), at, counted)
	}
}
