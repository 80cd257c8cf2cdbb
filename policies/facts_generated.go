// SPDX-License-Identifier: Apache-2.0

// Code generated from facts.go by go generate. DO NOT EDIT.

package policies

import "github.com/metalaw/metalaw/engine"

// Fact implements engine.Facts. An enum with a word outside its set is Missing, so that a rule which reads it halts.
func (f *Facts) Fact(i int) engine.Value {
	switch i {
	case 0:
		return engine.BoolValue(f.Server.ClaimRefSet)
	case 1:
		return oneOf(f.Server.ReclaimPolicy, serverReclaimPolicyWords)
	case 2:
		return engine.BoolValue(f.Server.Unclaimable)
	case 3:
		return engine.BoolValue(f.Server.Parked)
	case 4:
		return oneOf(f.Server.ParkedFrom, serverParkedFromWords)
	case 5:
		return engine.BoolValue(f.Server.Ignored)
	case 6:
		return engine.BoolValue(f.Server.Deleting)
	case 7:
		return engine.BoolValue(f.Server.Decommission)
	case 8:
		return engine.StringValue(f.Lifecycle.State)
	case 9:
		return engine.IntValue(f.Lifecycle.Entry)
	case 10:
		return engine.AgeValue(f.Lifecycle.Age)
	case 11:
		return engine.IntValue(f.Lifecycle.Retries)
	case 12:
		return engine.SetValue(f.Lifecycle.Marks)
	case 13:
		return engine.BoolValue(f.BMC.Reachable)
	case 14:
		return oneOf(f.BMC.Power, bmcPowerWords)
	case 15:
		return oneOf(f.BMC.Health, bmcHealthWords)
	case 16:
		return oneOf(f.BMC.Identity, bmcIdentityWords)
	case 17:
		return engine.BoolValue(f.BMC.OverrideSet)
	case 18:
		return oneOf(f.Boot.Purpose, bootPurposeWords)
	case 19:
		return oneOf(f.Boot.State, bootStateWords)
	case 20:
		return engine.BoolValue(f.Boot.Ready)
	case 21:
		return engine.BoolValue(f.Boot.Unheard)
	case 22:
		return engine.IntValue(f.Request.Refused)
	case 23:
		return engine.BoolValue(f.Claim.Bound)
	case 24:
		return engine.BoolValue(f.Claim.Released)
	case 25:
		return engine.BoolValue(f.Claim.Ended)
	case 26:
		return engine.BoolValue(f.Claim.Binding)
	case 27:
		return engine.BoolValue(f.Claim.Missing)
	case 28:
		return oneOf(f.Claim.Power, claimPowerWords)
	case 29:
		return engine.IntValue(f.Probe.Entry)
	case 30:
		return engine.BoolValue(f.Probe.Complete)
	case 31:
		return engine.BoolValue(f.Probe.DataFound)
	case 32:
		return engine.IntValue(f.Wipe.Entry)
	case 33:
		return engine.BoolValue(f.Wipe.Running)
	case 34:
		return engine.BoolValue(f.Wipe.Verified)
	case 35:
		return engine.BoolValue(f.Wipe.Failed)
	case 36:
		return engine.BoolValue(f.Wipe.ExcusedOnly)
	case 37:
		return engine.BoolValue(f.Wipe.Attested)
	case 38:
		return engine.DurationValue(f.Wipe.Budget)
	case 39:
		return engine.BoolValue(f.Maintenance.Granted)
	case 40:
		return engine.BoolValue(f.Maintenance.Ours)
	case 41:
		return engine.BoolValue(f.Maintenance.Consented)
	case 42:
		return oneOf(f.Operation.Name, operationWords)
	case 43:
		return engine.IntValue(f.Operation.Entry)
	case 44:
		return engine.BoolValue(f.Operation.Reset)
	case 45:
		return engine.BoolValue(f.Operation.Consented)
	case 46:
		return engine.StringValue(f.Hardware.Manufacturer)
	case 47:
		return engine.StringValue(f.Hardware.Model)
	case 48:
		return engine.IntValue(f.Hardware.MemoryGiB)
	case 49:
		return engine.IntValue(f.Hardware.Cores)
	case 50:
		return engine.IntValue(f.Hardware.Disks)
	case 51:
		return engine.BoolValue(f.Inventory.Changed)
	case 52:
		return engine.BoolValue(f.Inventory.Lost)
	case 53:
		return oneOf(f.Policy.Sanitization, policySanitizationWords)
	default:
		return engine.Value{}
	}
}

var (
	serverReclaimPolicyWords = []string{"Recycle", "Retain"}
	serverParkedFromWords    = []string{"None", "Error", "Released"}
	bmcPowerWords            = []string{"On", "Off", "Paused", "PoweringOn", "PoweringOff", "Unknown"}
	bmcHealthWords           = []string{"OK", "Warning", "Critical", "Unknown"}
	bmcIdentityWords         = []string{"Same", "Other", "Unknown"}
	bootPurposeWords         = []string{"None", "Probe", "Wipe", "Claim", "Maintenance"}
	bootStateWords           = []string{"None", "Pending", "Ready", "Error"}
	claimPowerWords          = []string{"On", "Off", "None"}
	policySanitizationWords  = []string{"required", "none"}
)
