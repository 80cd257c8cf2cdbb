// SPDX-License-Identifier: Apache-2.0

package selection

// The codes with which metalaw itself turns a server away from a claim. A bundle adds its own by its reject rules.
const (
	// CodeServerRef: the claim names another server.
	CodeServerRef = "other-server"
	// CodeSelector: the claim's selector does not match the server's labels.
	CodeSelector = "selector"
	// CodeDeleting: the server is being deleted.
	CodeDeleting = "deleting"
	// CodeClaimed: another claim has the server.
	CodeClaimed = "claimed"
	// CodeUnclaimable: somebody has cordoned the server.
	CodeUnclaimable = "unclaimable"
	// CodeMaintenance: the server is handed to a maintenance.
	CodeMaintenance = "maintenance"
	// CodeState: the server is not in state Available.
	CodeState = "not-available"
	// CodeDirty: the server holds data of an earlier holder.
	CodeDirty = "dirty"
	// CodePower: the server is not known to be off.
	CodePower = "not-off"
	// CodeTaint: the server has a taint that the claim does not tolerate.
	CodeTaint = "taint"
	// CodeNotAllowed: the policy does not allow the server and gives no reason of its own.
	CodeNotAllowed = "not-allowed"
	// CodePolicyError: the policy could not be evaluated for the server.
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
		{
			Code: CodeServerRef, Meaning: "The claim names another server.",
			Remedy: "Remove serverRef from a new claim, or name a server that is free.",
		},
		{
			Code: CodeSelector, Meaning: "The labels of the server do not match the claim's serverSelector.",
			Remedy: "Compare the selector with `kubectl get servers --show-labels`. It cannot be changed once it is set: create another claim.",
		},
		{
			Code: CodeDeleting, Meaning: "The server is being deleted.",
			Remedy: "Wait for another server.",
		},
		{
			Code: CodeClaimed, Meaning: "Another claim has the server.",
			Remedy: "Wait until a claim is released, or add servers. Where the claim has ended and its data is kept (reclaimPolicy Retain), " +
				"whoever runs the fleet has to give that up.",
		},
		{
			Code: CodeUnclaimable, Meaning: "The server is cordoned: spec.unclaimable is true.",
			Remedy: "Set spec.unclaimable to false when the server may be used again.",
		},
		{
			Code: CodeMaintenance, Meaning: "The server is handed to a maintenance: spec.serverMaintenanceRef is set.",
			Remedy: "Wait until the maintenance is over and the reference is cleared.",
		},
		{
			Code: CodeState, Meaning: "The server is not in state Available.",
			Remedy: "Wait where the server is on its way; where it rests, as in Parked or Error, whoever runs the fleet has to act. " +
				"Its state and conditions (`kubectl describe server NAME`) say what it waits for.",
		},
		{
			Code: CodeDirty, Meaning: "The server holds data of an earlier holder and has not been wiped.",
			Remedy: "Wait for Cleanup; a server whose wipe failed says so in its conditions.",
		},
		{
			Code: CodePower, Meaning: "The server is not known to be off.",
			Remedy: "Wait until it is powered off; if it stays on, look at its conditions and at its BMC.",
		},
		{
			Code: CodeTaint, Meaning: "The server has a taint that the claim does not tolerate.",
			Remedy: "Add a toleration to the claim, or remove the taint when its cause is gone.",
		},
		{
			Code: CodeNotAllowed, Meaning: "The selection policy does not allow the server for this claim and gives no reason.",
			Remedy: "Read allow in selection.rego, and add a reject rule that says why.",
		},
		{
			Code: CodePolicyError, Meaning: "The selection policy could not be evaluated for the server, so that nobody knows whether it allows it.",
			Remedy: "`metalaw explain claim NAME --all` names the rule and what it failed on, such as a fact that is missing or not a number; " +
				"whoever keeps the policy mends the rule, or whoever runs the fleet the server.",
		},
	}
}
