// SPDX-License-Identifier: Apache-2.0

package selection

// The codes with which metalaw itself turns a server away from a claim, which Codes documents. A bundle adds its own by its reject rules.
const (
	CodeServerRef   = "other-server"
	CodeSelector    = "selector"
	CodeDeleting    = "deleting"
	CodeClaimed     = "claimed"
	CodeUnclaimable = "unclaimable"
	CodeMaintenance = "maintenance"
	CodeState       = "not-available"
	CodeDirty       = "dirty"
	CodePower       = "not-off"
	CodeTaint       = "taint"
	CodeNotAllowed  = "not-allowed"
	CodePolicyError = "policy-error"
)

// Code documents one code.
type Code struct {
	Code string
	// Meaning is one sentence; Remedy says what the author of the claim or the owner of the fleet can do.
	Meaning, Remedy string
}

// Codes documents every code of metalaw itself, in the order in which Eligible checks them.
func Codes() []Code {
	return []Code{
		{CodeServerRef, "The claim names another server.", "Remove serverRef from a new claim, or name a server that is free."},
		{CodeSelector, "The labels of the server do not match the claim's serverSelector.",
			"Compare the selector with `kubectl get servers --show-labels`. It cannot be changed once it is set: create another claim."},
		{CodeDeleting, "The server is being deleted.", "Wait for another server."},
		{CodeClaimed, "Another claim has the server.",
			"Wait until a claim is released, or add servers. Where the claim has ended and its data is kept (reclaimPolicy Retain), " +
				"an operator of the fleet has to give that up."},
		{CodeUnclaimable, "The server is cordoned: spec.unclaimable is true.",
			"Set spec.unclaimable to false when the server may be used again."},
		{CodeMaintenance, "The server is handed to a maintenance: spec.serverMaintenanceRef is set.",
			"Wait until the maintenance is over and the reference is cleared."},
		{CodeState, "The server is not in state Available, or is to be parked.",
			"Wait where the server is on its way; where it rests, as in Parked or Error, an operator of the fleet has to act. " +
				"Its state and conditions (`kubectl describe server NAME`) say what it waits for."},
		{CodeDirty, "The server holds data of an earlier holder and has not been wiped.",
			"Wait for Cleanup; a server whose wipe failed says so in its conditions."},
		{CodePower, "The server is not known to be off.",
			"Wait until it is powered off; if it stays on, look at its conditions and at its BMC."},
		{CodeTaint, "The server has a taint that the claim does not tolerate.",
			"Add a toleration to the claim, or remove the taint when its cause is gone."},
		{CodeNotAllowed, "The selection policy does not allow the server for this claim and gives no reason.",
			"Read allow in selection.rego, and add a reject rule that says why."},
		{CodePolicyError, "The selection policy could not be evaluated for the server, so that it is not known whether it allows the server.",
			"`metalaw explain claim NAME --all` names the rule and what it failed on, such as a fact that is missing or not a number. " +
				"The author of the policy mends the rule, or an operator of the fleet the server."},
	}
}
