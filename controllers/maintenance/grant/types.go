// SPDX-License-Identifier: Apache-2.0

// Package grant decides which maintenances may have their servers now, and why the others wait. It is pure: the same snapshot gives the
// same grants.
package grant

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/engine/maintenance"
)

// Snapshot is everything that the grants depend on. Decide changes none of it.
type Snapshot struct {
	Now time.Time
	// Policy is what the policy in force says of maintenance; nil is the default.
	Policy *maintenance.Policy
	// Servers is every server, by name.
	Servers map[string]*Server
	// Maintenances is every maintenance that waits, holds its server or failed; those that ended are left out.
	Maintenances []Maintenance
	// Budgets are those of the FleetControl for the action Maintenance.
	Budgets []Budget
	// ClaimsWait says that claims wait for a server.
	ClaimsWait bool
}

// Server is what the grants depend on of one server.
type Server struct {
	Labels map[string]string
	// Rack is the rack that its metadata names; empty where nobody said.
	Rack string
	// Facts are what checks and windows of the policy read: health, power, conditions, the labels and annotations of the claim. Decide
	// itself fills in the labels of the server and the maintenance.
	Facts maintenance.Facts
	// Claim is the claim that holds the server; nil where none does.
	Claim *Claim
	// Holder is the maintenance that spec.serverMaintenanceRef names; nil where it is not set. HolderUID is empty where the manager did
	// not grant it: another program holds the server then.
	Holder    *types.NamespacedName
	HolderUID types.UID
	// Unready says why no maintenance begins on the server as it is: an erase that runs or was booted, Parked, Observing, ignored, no
	// lifecycle. Empty where one may.
	Unready string
	// Down says that the server is out of use for whatever cause, so that limits count it.
	Down bool
	// Frozen says in words which freeze or pause holds maintenances back; empty where none does.
	Frozen string
	// ReleasedAt is when its last claim ended; zero where no release is on record.
	ReleasedAt time.Time
	// EndedAt is when its last maintenance ended, from which on the pause of its wave runs; zero where none is on record.
	EndedAt time.Time
}

// Claim is what the grants depend on of the claim that holds a server.
type Claim struct {
	UID types.UID
	types.NamespacedName
	// Approved says that it bears an approval now, in whatever spelling.
	Approved bool
	// DrainRequired says that the approval is the word of a drainer.
	DrainRequired bool
}

// Maintenance is one ServerMaintenance.
type Maintenance struct {
	types.NamespacedName
	UID    types.UID
	Server string
	Labels map[string]string
	// Annotations are for windows that read them.
	Annotations map[string]string
	Created     time.Time
	// Enforced says that its policy is Enforced and that its maker is known to hold the right to that; else its holder is asked.
	Enforced bool
	Priority int32
	// Boots says that it has a boot template.
	Boots bool
	// Expected is how long it is expected to hold the server; 0 takes the policy's.
	Expected time.Duration
	// Group names maintenances that are granted all together or not at all; empty where it stands alone.
	Group string
	// Refused says why it may not be granted whatever its server does: NotPermitted, NotAdopted, PlanOnly. Reason is empty where it may.
	Refused Answer
	// Asked is the claim whose holder was asked, and AskedAt when; zero where nobody was.
	Asked   types.UID
	AskedAt time.Time
	// GrantedAt is when it was granted; zero where it was not. Failed says that it failed, Ends that it is deleted or aborted.
	GrantedAt    time.Time
	Failed, Ends bool
}

// Budget bounds how many servers are in maintenance at a time.
type Budget struct {
	Name string
	// Covers says that the budget counts and bounds a server with these labels.
	Covers func(labels map[string]string) bool
	// Per is the key of a label, each of whose values has a budget of its own; empty where all servers share one.
	Per string
	// Most is how many servers of so many may be in maintenance.
	Most func(servers int) int
}

// Answer is why a maintenance waits, or that it does not.
type Answer struct {
	// Reason is that of the condition Granted.
	Reason, Message string
}

// Obstacle is one thing that a maintenance waits for.
type Obstacle struct {
	Answer
	// Servers are those that fill a limit, by name; empty for other reasons.
	Servers []string
}

// Grant is the answer to one maintenance that waits: it does not hold its server, did not fail and does not end.
type Grant struct {
	Maintenance types.NamespacedName
	UID         types.UID
	Server      string
	// Granted says that it may have the server now.
	Granted bool
	// Answer says why it waits, or which window, wave and approval it was granted under.
	Answer
	// Obstacles are everything that it waits for; the first is the Answer. Empty where it is granted.
	Obstacles []Obstacle
	// Follows is the maintenance that ends and still holds the server, which is handed over in one write; empty where none does.
	Follows types.UID
	// Claim is the claim whose holder consented; empty where no claim holds the server.
	Claim types.UID
	// Asks says that status.asked is to be written, because the holder of the claim was not asked or told yet. It may be set together
	// with Granted, where an enforced maintenance gives no notice.
	Asks bool
	// Window and Wave are those under which it was granted; empty where none covers the server.
	Window, Wave string
	// After is the time at which the answer may change by the clock alone; zero where it cannot.
	After time.Time
	// FailsAfter is how long it may wait for CheckFails until the maintenance is Failed; 0 is for ever.
	FailsAfter time.Duration
}
