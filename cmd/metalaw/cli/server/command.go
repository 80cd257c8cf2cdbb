// SPDX-License-Identifier: Apache-2.0

// Package server holds the verbs on servers: the ways out of a state in which a server is stuck, and those that keep
// servers away from claims. Each asks; the manager does what is asked, refuses it, and says so.
package server

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Command is `metalaw server` with its verbs; program is how the user calls this program.
func Command(program string) *cobra.Command {
	flags := &access.Flags{}
	group := terminal.Group(&cobra.Command{
		Use: "server",
		Short: "Ask something of servers: retry, release, undo-release, sanitize, attest, prove, force, declare-clean, park, unpark, " +
			"cordon, uncordon, decommission, recommission",
		Long: "The ways out of a state in which a server is stuck, and what keeps servers away from claims. Each verb stores a request on the " +
			"Server, with the reason. Admission records who asked. The manager does it or refuses it, and says so in " +
			"status.operation or in an Event.\n\n" +
			"Exit codes: 0 all done (or asked, without --wait). 1 something was refused, failed, did not end in time, or nothing matched. " +
			"2 the command line makes no sense, or no user was there to confirm.",
	}, "verb", program+" server --help")
	flags.Register(group)
	for _, v := range verbs {
		group.AddCommand(v.command(flags))
	}
	group.AddCommand(sanitizationCommand(flags))
	return group
}

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

func (v verb) command(flags *access.Flags) *cobra.Command {
	r := request{verb: v}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:     v.usage(),
		Short:   v.short,
		Long:    v.long,
		Example: v.example,
		Args: func(cmd *cobra.Command, names []string) error {
			r.names, r.timed = names, cmd.Flags().Changed("timeout")
			return r.check()
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			one := &run{request: r, client: c, report: &report{terminal: t, output: output, dryRun: r.dryRun, verb: v.name}}
			return one.do(ctx)
		}),
		ValidArgsFunction: flags.Complete(0, serverNames),
	}
	v.flags(cmd, &r)
	output.Register(cmd)
	return cmd
}

func (v verb) usage() string {
	if v.operation == v1alpha1.OperationAttestDisk {
		return v.name + " NAME --disk DISK --method destroy|removed --reason TEXT"
	}
	words := v.name + " [NAME...] [(-l SELECTOR | --all) [--state STATE]] --reason TEXT"
	if v.operation == v1alpha1.OperationForce {
		words += " --to STATE [--override-safety]"
	}
	return words
}

func (v verb) flags(cmd *cobra.Command, r *request) {
	f := cmd.Flags()
	f.StringVar(&r.reason, "reason", "", "why; required, and kept with the request")
	f.BoolVar(&r.dryRun, "dry-run", false, "ask the API server and its admission, and store nothing")
	f.BoolVarP(&r.yes, "yes", "y", false, "do not ask for a confirmation")
	if v.operation == v1alpha1.OperationAttestDisk {
		f.StringVar(&r.attests.disk, "disk", "", "serial number, WWID or name of the disk, as the ServerInventory lists it, "+
			"or serial number, PCI address, slot or name of hidden storage; required")
		f.StringVar(&r.attests.method, "method", "", "what became of the disk: destroy or removed; required")
		terminal.Offer(cmd, "method", methods)
	} else {
		f.StringVarP(&r.selector, "selector", "l", "", "labels of the servers, such as 'rack=r1,model in (a, b)'")
		f.BoolVar(&r.all, "all", false, "every server")
		f.StringVar(&r.state, "state", "", "with -l or --all: only servers in this state")
		terminal.Offer(cmd, "state", states)
	}
	forced := v.operation == v1alpha1.OperationForce
	waits := forced || v.operation == v1alpha1.OperationUndoRelease || v.operation == v1alpha1.OperationAttestDisk ||
		v.operation == v1alpha1.OperationProve
	if v.operation != "" {
		f.BoolVar(&r.wait, "wait", waits, "wait until the manager has ended it, and say how")
		f.DurationVar(&r.timeout, "timeout", 5*time.Minute, "how long --wait waits")
	}
	if forced {
		f.StringVar(&r.to, "to", "", "state that the server is forced into; required")
		f.BoolVar(&r.override, "override-safety", false, "set safety rules aside that guard data, where that is what it takes; recorded")
		terminal.Offer(cmd, "to", states)
	}
}

// states are those of the default bundle; another one may define more.
var states = []string{string(v1alpha1.StateInitial), string(v1alpha1.StateObserving), string(v1alpha1.StateDiscovery),
	string(v1alpha1.StateAvailable), string(v1alpha1.StateReserved), string(v1alpha1.StateReleased), string(v1alpha1.StateCleanup),
	string(v1alpha1.StateMaintenance), string(v1alpha1.StateParked), string(v1alpha1.StateError), string(v1alpha1.StateDecommissioned)}

// methods are what may have become of a disk that no wipe reaches.
var methods = []string{string(policyv1alpha1.AttestDestroy), string(policyv1alpha1.AttestRemoved)}

func serverNames(ctx context.Context, c client.Client) ([]string, error) {
	var servers v1alpha1.ServerList
	err := c.List(ctx, &servers)
	return lists.Map(servers.Items, func(s *v1alpha1.Server) string {
		return cobra.CompletionWithDesc(s.Name, cmp.Or(string(s.Status.State), "-"))
	}), err
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
		long: "A server in Error waits until an operator has looked at it. This says that you have: the rules of the policy route it again " +
			"by what is known of it. It comes back to Error when the cause has not gone away. A server that is " +
			"named and has nothing to retry " +
			"is refused; -l and --all leave such servers out.",
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
		name: "undo-release", operation: v1alpha1.OperationUndoRelease,
		short: "Take the release of a claim back before its data is erased",
		long: "A claim that was deleted by mistake can come back as long as no wipe was prepared. That is so within the setting releaseGrace " +
			"of the policy, and after that until the machine is off. This takes the release record away, waits for that, and prints the claim " +
			"with its labels and annotations. The outcome goes to the standard error, and so does what holds the manager " +
			"back. After the timeout it prints the claim, too. " +
			"Apply the claim in its namespace: the server goes back to it with its data, and boots again if it was powered off. " +
			"Until then nothing on the server is erased.",
		example: "  {{.}} server undo-release rack1-07-system-0 --reason 'deleted by mistake, INC-1210' > claim.yaml\n  kubectl apply -f claim.yaml",
	},
	{
		name: "sanitize", operation: v1alpha1.OperationSanitize,
		short: "Erase a server in Error whose disks hold data that no claim left; the data is gone",
		long: "A server that is new here, adopted or restored is offered only if its disks are blank or wiped (setting offer.accepts). " +
			"If the agent finds data, the server rests in Error (rule DataOnDisks), and nothing is erased. " +
			"This has it erased: you answer for the data. " +
			"The manager refuses a server that a claim holds, and admission a request without a reason. " +
			"It takes the verb \"sanitize\" on servers, beside the right to patch them: ClusterRole metalaw-server-sanitizer.",
		example: "  # What the agent found is in the condition Ready\n  {{.}} explain server rack1-07-system-0\n\n" +
			"  {{.}} server sanitize rack1-07-system-0 --reason 'bought used, CHG-40' --wait",
	},
	{
		name: "attest", operation: v1alpha1.OperationAttestDisk,
		short: "Answer for a disk that no wipe reaches: it is destroyed, or out of the machine",
		long: "A wipe is verified only if it covers every disk that the ServerInventory remembers. A dead disk stops it: the server rests in " +
			"Error. This records that you answer for the disk: method destroy says that it is destroyed, removed that it was taken " +
			"out for good. A wipe need not see that disk any more, and the SanitizationRecord names it, with you and the reason. " +
			"A disk that the wipe does see is erased all the same.\n\n" +
			"Storage that no disk shows is attested in the same way (condition StorageHidden names it). It fails no wipe of this server " +
			"until another claim has held it.\n\n" +
			"It asks before it begins, and waits for the end unless --wait=false is given. " +
			"It takes the verb \"attest-disk\" on servers, beside the right to patch them: ClusterRole metalaw-disk-attester.",
		example: "  # Which disks are missing is in the condition Ready\n  {{.}} explain server rack1-07-system-0\n\n" +
			"  {{.}} server attest rack1-07-system-0 --disk S4EVNX0R --method destroy --reason 'shredded, certificate 4711'\n" +
			"  {{.}} server retry rack1-07-system-0 --reason 'disk S4EVNX0R is attested' --wait",
	},
	{
		name: "force", operation: v1alpha1.OperationForce,
		short: "Move a server into a state past the rules of the policy",
		long: "The last way out. The server must be able to stay in the state. The manager refuses a state from which a rule would lead it away at " +
			"once, and one that a safety rule forbids. Only --override-safety sets the rules aside that guard data: absence is not evidence, " +
			"never wipe while claimed or retained, never offer while dirty. status.operation.overrides records which of them were set aside; " +
			"the server's history adds who asked and why. It takes the verb \"force\" on servers, beside the right to patch " +
			"them: ClusterRole metalaw-server-forcer. It asks before it begins, and waits for the end unless --wait=false is given.",
		example: "  # Out of a state that it cannot leave by itself\n" +
			"  {{.}} server force rack1-07-system-0 --to Error --reason 'stuck in Discovery, INC-1207'\n\n" +
			"  # Its disks were destroyed: nothing is left to be wiped\n" +
			"  {{.}} server force rack1-07-system-0 --to Available --override-safety --reason 'disks shredded, ticket 77'",
	},
	{
		name: "declare-clean", operation: v1alpha1.OperationDeclareClean,
		short: "Offer servers in Error whose status was lost; you answer for their disks",
		long: "After a stay under another operator's CRDs, or a restore, a server without proof that it is clean waits in Error " +
			"(rule DataUnreleased). If these machines were not used meanwhile, this offers them again, and nothing is erased. " +
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
		short: "Power a server off and hand it to people outside",
		long: "A parked server is left alone, whatever happens to it, until it is unparked. " +
			"A claim that holds it keeps it. A request that the server's state does not allow yet is kept, " +
			"and no new claim gets the server meanwhile.",
		example: "  {{.}} server park rack1-07-system-0 --reason 'mainboard to be replaced' --wait",
	},
	{
		name: "unpark", operation: v1alpha1.OperationUnpark,
		short: "Take a parked server back",
		long: "It returns to Error or Released where it was parked there, else to its claim, to the free servers, " +
			"or through inspection, as the rules of the policy say. " +
			"On a server that is not parked it withdraws a request to park it.",
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
	{
		name: "decommission", operation: v1alpha1.OperationDecommission,
		short: "Take a server out of service for good: its claim ends, its disks are erased, and it stays off",
		long: "Records that the server goes out of service, and keeps new claims away from it. A claim that holds the server keeps it until " +
			"its owner deletes the claim; a manager with --maintenance=on asks the owner by the label " + v1alpha1.MaintenanceNeededLabel +
			". Then the disks are erased with proof, the machine is switched off, and the server rests in Decommissioned. The manager " +
			"touches it no more, and the Server may be deleted.\n\n" +
			"The operation ends when the manager has recorded it; condition Decommission says how far it is. Recommission takes it back. " +
			"The policy needs a state Decommissioned; a manager refuses the operation under one that has none. " +
			"It takes the verb \"decommission\" on servers, beside the right to patch them: ClusterRole metalaw-server-decommissioner.",
		example: "  {{.}} server decommission rack1-07-system-0 --reason 'end of lease, CHG-77' --wait\n\n" +
			"  # How far it is\n  {{.}} explain server rack1-07-system-0",
	},
	{
		name: "recommission", operation: v1alpha1.OperationRecommission,
		short: "Take a decommissioned server back into service, or withdraw a decommission",
		long: "A server in Decommissioned goes to Initial, and from there through inspection. In every other state the decommission is " +
			"withdrawn, and the server stays where it is. spec.unclaimable stays set: uncordon the server when claims may have it. " +
			"It takes the verb \"decommission\" on servers, beside the right to patch them: ClusterRole metalaw-server-decommissioner.",
		example: "  {{.}} server recommission rack1-07-system-0 --reason 'lease extended' --wait\n" +
			"  {{.}} server uncordon rack1-07-system-0 --reason 'lease extended'",
	},
	{
		name: "prove", operation: v1alpha1.OperationProve,
		short: "Answer for the machine of a server: it is the one that reported last, or that reports next",
		long: "A wipe needs the machine, and not only its UUID. The agent is held against the serial number and the addresses that the BMC " +
			"shows, and against what was proved before. If the BMC shows neither, condition IdentityUnproven stands, and under " +
			"wipe.identity: Proved the disks are refused. If a report contradicts, as after a new mainboard, it is refused.\n\n" +
			"This records that you answer for the machine. If its last report is unproven, that report counts from now on. Else the next " +
			"report counts, so that this can be said ahead of a repair. A machine that the BMC of another server shows stays refused. " +
			"It waits for the end unless --wait=false is given. It takes the verb \"prove\" on servers, beside the right to patch " +
			"them: ClusterRole metalaw-server-prover.",
		example: "  # Which servers that concerns\n  {{.}} doctor\n\n" +
			"  {{.}} server prove rack1-07-system-0 --reason 'mainboard replaced, CHG-81'\n\n" +
			"  {{.}} server prove -l rack=gb200 --reason 'rack label checked against DMI, CHG-82' --yes",
	},
}
