// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/call"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/metalprobe"
)

// Steps are what makes one effect hold. The executor does the acts in order. The first act that is not done ends the
// steps with its own progress.
type Steps struct {
	Acts []Act
	// Then is the progress of the effect once each act is done.
	Then loop.Progress
}

// Act is one thing that the executor does. The kinds below are all that there are.
type Act interface{ act() }

// What an act changes in memory.
type (
	// Set changes the server as it is recorded.
	Set struct{ To func(*v1alpha1.Server) }
	// Remember changes what this process remembers of the server.
	Remember struct{ To func(*Memory) }
	// Tell reports an Event once the record is stored.
	Tell struct{ operations.Note }
	// Wake has the server looked at again; ForBMC says that it waits for the BMC to show something.
	Wake struct {
		In     time.Duration
		ForBMC bool
	}
	// Refresh asks for a reading of the BMC that was begun from now on.
	Refresh struct{}
	// RefreshIdentity asks for what the BMC shows of its machine.
	RefreshIdentity struct{}
	// Forget forgets how a call ended, so that it can be made again.
	Forget struct{ ID string }
	// Try does steps whose progress holds nothing back.
	Try struct{ Steps Steps }
)

// What an act waits for before those after it.
type (
	// Permit asks the fleet's freezes, breaker and budgets (order 5: a budget counts from here on).
	Permit struct{ Actions []fleet.Action }
	// Recheck asks past the cache whether a freeze or the breaker holds an action back by now.
	Recheck struct{ Actions []fleet.Action }
	// Confirm permits an action, and reads past the cache whether the server is as it was seen. It stands before each
	// write to the API that cannot be undone.
	Confirm struct{ Action fleet.Action }
	// ConfirmClaim is Confirm before a write to the server alone, which the API server refuses if the server changed.
	ConfirmClaim struct{}
	// ProveRest reads past the cache whether the store proves the wipe of an entry that the cache shows.
	ProveRest struct{ Entry int64 }
)

// What an act writes to the API server.
type (
	// Keep changes the inventory as it is stored.
	Keep struct {
		To func(*policyv1alpha1.ServerInventory)
	}
	// Attest writes the disk for which a person answers into the inventory, and Prove that a person answers for the
	// machine, before the operation ends. Either is written once, however often it is tried.
	Attest struct{ Answer operations.Answer }
	Prove  struct {
		Settled policyv1alpha1.SettledIdentity
	}
	// Ignition writes the ignition of an agent's boot with a token for this server, purpose and entry, unless one stands.
	Ignition struct {
		Agent boots.Agent
		// Config lacks the token and the trust of the registry.
		Config metalprobe.Config
	}
	// AgentBoot writes the boot configuration of an agent, unless one stands for this entry (order 6).
	AgentBoot struct{ Agent boots.Agent }
	// MendIgnition looks once in the life of this process at an ignition that another process wrote. Before version 0.1
	// the manager named a format there, which the boot operator answers with an error for ever.
	MendIgnition struct{ Agent boots.Agent }
	// DropAgentBoot deletes the boot configuration of an agent that is ours, and its token.
	DropAgentBoot struct {
		Agent boots.Agent
		// Named says that the server named it, so that the token is looked for in any case.
		Named bool
	}
	// OwnedBoot brings the boot configuration of an owner to what the owner asks.
	OwnedBoot struct{ In boots.OwnedInput }
)

// Ask has the BMC asked in the background, behind the guard, which looks past the cache right before each write.
type Ask struct {
	// ID names the call among those of the server.
	ID   string
	Call call.Call
	// Actions are what the call amounts to.
	Actions []fleet.Action
	// Stored says that the record is stored before the BMC is asked (order 1). Anything else is recorded already.
	Stored bool
	// ShowsLater says that what the call asks for shows only after a while.
	ShowsLater bool
}

func (Set) act()             {}
func (Remember) act()        {}
func (Tell) act()            {}
func (Wake) act()            {}
func (Refresh) act()         {}
func (RefreshIdentity) act() {}
func (Forget) act()          {}
func (Try) act()             {}
func (Permit) act()          {}
func (Recheck) act()         {}
func (Confirm) act()         {}
func (ConfirmClaim) act()    {}
func (ProveRest) act()       {}
func (Keep) act()            {}
func (Attest) act()          {}
func (Prove) act()           {}
func (Ignition) act()        {}
func (AgentBoot) act()       {}
func (MendIgnition) act()    {}
func (DropAgentBoot) act()   {}
func (OwnedBoot) act()       {}
func (Ask) act()             {}
