// SPDX-License-Identifier: Apache-2.0

// Package server holds the verbs on servers: the ways out of a state in which a server is stuck, and those that keep
// servers away from claims. Each asks; the manager does what is asked, refuses it, and says so.
package server

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// verb is one thing that can be asked of servers.
type verb struct {
	name string
	// operation is the value of the operation annotation; empty for a verb that changes the spec and has ended with that.
	operation string
	// unclaimable is what a verb without operation makes of spec.unclaimable.
	unclaimable bool
	// done is what is said of a server for which a verb without operation has been stored.
	done    string
	short   string
	long    string
	example string
}

// pastRules says that a verb goes past the rules of the policy, which takes the verb force.
func (v verb) pastRules() bool {
	return v.operation == v1alpha1.OperationForce || v.operation == v1alpha1.OperationDeclareClean
}

// verbs lists every verb, the mildest first.
var verbs = []verb{
	{
		name: "retry", operation: v1alpha1.OperationRetry,
		short: "Acknowledge an error and let the server find its place again",
		long: "A server in Error waits until somebody has looked at it. This says that somebody has: the rules of the policy route it again " +
			"by what is known of it. It comes back to Error when the cause has not gone away.",
		example: "  # One server, and see how it ends\n  {{.}} server retry rack1-07-system-0 --reason 'DIMM replaced' --wait\n\n" +
			"  # Every server in Error of a rack, after its switch was repaired\n" +
			"  {{.}} server retry -l rack=r1 --state Error --reason 'switch repaired'",
	},
	{
		name: "release", operation: v1alpha1.OperationRelease,
		short: "Record by hand that a claim which is gone has ended; the data may be erased then",
		long: "Nothing is erased without a record that the last holder is done with it. Where a claim has vanished without leaving one, this " +
			"makes it by hand. It is refused while a claim that holds the server exists: delete the claim instead.",
		example: "  {{.}} server release rack1-07-system-0 --reason 'namespace shop was lost, see INC-1204' --wait",
	},
	{
		name: "force", operation: v1alpha1.OperationForce,
		short: "Move a server into a state past the rules of the policy",
		long: "The last way out. The server must be able to stay in the state: one from which a rule would lead it away at once is refused, and so " +
			"is one that a safety rule forbids. The rules that guard data (absence is not evidence, never wipe while claimed or retained, " +
			"never offer while dirty) are set aside only with --override-safety; which of them were is recorded in status.operation.overrides and " +
			"in the server's history, with who asked and why. It takes the verb \"force\" on servers, beside the right to patch " +
			"them: ClusterRole metalaw-server-forcer. It asks before it begins, and waits for the end unless --wait=false is given.",
		example: "  # Out of a state that it cannot leave by itself\n" +
			"  {{.}} server force rack1-07-system-0 --to Error --reason 'stuck in Discovery, INC-1207'\n\n" +
			"  # Its disks were destroyed: nothing is left to be wiped\n" +
			"  {{.}} server force rack1-07-system-0 --to Available --override-safety --reason 'disks shredded, ticket 77'",
	},
	{
		name: "declare-clean", operation: v1alpha1.OperationDeclareClean,
		short: "Offer servers in Error whose status was lost; somebody answers for their disks",
		long: "After a visit to another operator's CRDs, or a restore, a server without proof that it is clean waits in Error " +
			"(rule DataUnreleased). If nobody used these machines meanwhile, this offers them again, and nothing is erased. " +
			"The manager refuses a server that a claim holds or held, that is not in Error, or that runs. " +
			"The server's history keeps who asked, why, and that rule ClearOnlyOnProof was set aside. " +
			"It takes the verb \"force\" on servers, beside the right to patch them: ClusterRole metalaw-server-forcer.",
		example: "  # See first which servers that is\n" +
			"  {{.}} server declare-clean --all --state Error --reason 'came back from metal-operator, see CHG-31' --dry-run\n\n" +
			"  # A rack that metal-operator gave to no claim\n" +
			"  {{.}} server declare-clean -l rack=r1 --state Error --reason 'came back from metal-operator, see CHG-31' --wait",
	},
	{
		name: "park", operation: v1alpha1.OperationPark,
		short:   "Power a server off and hand it to somebody outside",
		long:    "A parked server is left alone, whatever happens to it, until it is unparked. A claim that holds it keeps it.",
		example: "  {{.}} server park rack1-07-system-0 --reason 'mainboard to be replaced' --wait",
	},
	{
		name: "unpark", operation: v1alpha1.OperationUnpark,
		short:   "Take a parked server back",
		long:    "It returns to its claim, to the free servers, or through inspection, as the rules of the policy say.",
		example: "  {{.}} server unpark rack1-07-system-0 --reason 'mainboard replaced' --wait",
	},
	{
		name: "cordon", unclaimable: true, done: "takes no new claim",
		short:   "Keep new claims away from a server; one that holds it stays",
		long:    "Sets spec.unclaimable, and annotation " + v1alpha1.UnclaimableReasonAnnotation + " to the reason.",
		example: "  {{.}} server cordon -l rack=r1 --reason 'rack r1 moves on Friday'",
	},
	{
		name: "uncordon", unclaimable: false, done: "takes claims again",
		short:   "Let claims have a server again",
		long:    "Clears spec.unclaimable, and sets annotation " + v1alpha1.UnclaimableReasonAnnotation + " to the reason.",
		example: "  {{.}} server uncordon -l rack=r1 --reason 'rack r1 has moved'",
	},
}
