// SPDX-License-Identifier: Apache-2.0

package trees

// outcome is what the operator makes of one captured tree.
type outcome struct {
	tree string
	// assigned is true where the administrator has assigned UUIDs to the systems, with all that the tree shows to prove them.
	assigned bool
	// machine and firmware name the BMC in docs/tested-bmcs.md; the firmware is what the tree shows.
	machine, firmware string
	// works is what the page says in its column of outcomes.
	works string
	hosts []host
	// restart is where graceful-restart-bmc goes, and with which reason the condition Reset ends.
	restart restart
}

// host is one system behind the BMC.
type host struct {
	id string
	// override is where boot overrides are written, and boots what the machine boots then. Both are empty where it never boots.
	override, boots string
	// lists is how many drives the BMC lists that count; 0 where it has no list of drives.
	lists int
	// unproven says that the BMC shows neither a serial number nor an address, so that a person answers for the machine.
	unproven bool
	// stops says where the way ends before the server is offered again; nil where it does not.
	stops *stop
}

// stop is where the way of a host ends.
type stop struct {
	// state is that of the Server; empty where there is none.
	state string
	// kind is BMC or Server. Its condition has this status and reason, and a message with these words.
	kind, condition, reason string
	words                   []string
}

type restart struct{ at, reason string }

// outcomes are what happens today, and why that is right or what is wrong with it.
var outcomes = []outcome{
	{
		// The nodes show no UUID and share a serial number: without a UUID nothing proves which machine answers.
		tree: "cray-ex235n", machine: "HPE Cray EX235n, two nodes", firmware: "not shown",
		works: "not managed: the systems show no UUID; an annotation can assign them",
		hosts: []host{
			{id: "Node0", stops: &stop{kind: "BMC", condition: "SystemsAccepted", reason: "SystemUnidentified", words: []string{"Systems/Node0 shows no UUID", "policy.metalaw.dev/system-uuids"}}},
			{id: "Node1", stops: &stop{kind: "BMC", condition: "SystemsAccepted", reason: "SystemUnidentified", words: []string{"Systems/Node1 shows no UUID", "policy.metalaw.dev/system-uuids"}}},
		},
		// Its manager offers ForceRestart only, so nothing may be asked.
		restart: restart{reason: "ResetFailed"},
	},
	{
		// With assigned UUIDs the nodes are told apart by their MAC addresses. Their boot settings show no override, and without
		// one nothing says that a node boots the inspection and not its disk.
		tree: "cray-ex235n", assigned: true, machine: "HPE Cray EX235n, two nodes, with assigned UUIDs", firmware: "not shown",
		works: "managed, and never switched on: the BMC offers no boot override",
		hosts: []host{
			{id: "Node0", stops: &stop{state: "Discovery/Off", kind: "Server", condition: "BootOverrideMissing", reason: "BootOverrideMissing",
				words: []string{"no boot override", "boot.withoutOverride: true"}}},
			{id: "Node1", stops: &stop{state: "Discovery/Off", kind: "Server", condition: "BootOverrideMissing", reason: "BootOverrideMissing",
				words: []string{"no boot override", "boot.withoutOverride: true"}}},
		},
		restart: restart{reason: "ResetFailed"},
	},
	{
		// iDRAC 6.00 has no settings resource: the override belongs to the system.
		tree: "dell-r750-idrac9", machine: "Dell PowerEdge R750, iDRAC9", firmware: "6.00.30.00",
		works:   "the whole way",
		hosts:   []host{{id: "System.Embedded.1", override: "/redfish/v1/Systems/System.Embedded.1", boots: "Pxe", lists: 3}},
		restart: restart{at: "/redfish/v1/Managers/iDRAC.Embedded.1", reason: "ResetComplete"},
	},
	{
		// The boot mode is read-only there: the refusal names the property, and the override is set without it.
		tree: "hpe-dl325-ilo5", machine: "HPE ProLiant DL325 Gen10 Plus, iLO 5", firmware: "iLO 5 v2.46",
		works:   "the whole way",
		hosts:   []host{{id: "1", override: "/redfish/v1/Systems/1", boots: "Pxe"}},
		restart: restart{at: "/redfish/v1/Managers/1", reason: "ResetComplete"},
	},
	{
		// As that of the V2 below: its settings resource shows the boot order only.
		tree: "lenovo-sr670-xcc1", machine: "Lenovo ThinkSystem SR670, XCC 1.40", firmware: "TGBT20E 1.40 2021-05-17",
		works:   "the whole way",
		hosts:   []host{{id: "1", override: "/redfish/v1/Systems/1", boots: "Pxe", lists: 2}},
		restart: restart{at: "/redfish/v1/Managers/1", reason: "ResetComplete"},
	},
	{
		// The settings resource shows the boot order only: the override belongs to the system.
		tree: "lenovo-sr670v2-xcc", machine: "Lenovo ThinkSystem SR670 V2, XCC", firmware: "TGBT42S 2.83 2023-07-05",
		works:   "the whole way",
		hosts:   []host{{id: "1", override: "/redfish/v1/Systems/1", boots: "Pxe", lists: 4}},
		restart: restart{at: "/redfish/v1/Managers/1", reason: "ResetComplete"},
	},
	{
		// The override belongs to /SD, with If-Match. The host names its manager, which offers ForceRestart only: nothing is asked,
		// least of all of the manager of the GPU board.
		tree: "nvidia-dgx-h100", machine: "NVIDIA DGX H100, AMI", firmware: "23.11.20",
		works:   "the whole way; graceful-restart-bmc is refused, because the BMC offers ForceRestart only",
		hosts:   []host{{id: "DGX", override: "/redfish/v1/Systems/DGX/SD", boots: "Pxe"}},
		restart: restart{reason: "ResetFailed"},
	},
	{
		// The BMC shows no network interface; PXE needs none.
		tree: "nvidia-gb200", machine: "NVIDIA GB200 NVL, OpenBMC", firmware: "GB200Nvl-24.12-8",
		works: "the whole way over PXE, once a user has answered for the machine (metalaw server prove); " +
			"UEFI HTTP needs an annotation with the host's MAC addresses",
		hosts:   []host{{id: "System_0", override: "/redfish/v1/Systems/System_0/Settings", boots: "Pxe", lists: 9, unproven: true}},
		restart: restart{at: "/redfish/v1/Managers/BMC_0", reason: "ResetComplete"},
	},
	{
		// It shows neither UUID nor serial number nor MAC address: nothing could prove which machine answers.
		tree: "openbmc-stock", machine: "OpenBMC, stock", firmware: "2.15.0-dev-686-g100c36de90",
		works: "not managed: the system shows no UUID, and no serial number or MAC address that could prove an assigned one",
		hosts: []host{{id: "system", stops: &stop{kind: "BMC", condition: "SystemsAccepted", reason: "SystemUnidentified",
			words: []string{"Systems/system shows no UUID, no serial number and no MAC address"}}}},
		restart: restart{at: "/redfish/v1/Managers/bmc", reason: "ResetComplete"},
	},
	{
		// The mode is named with each override, because this make forgets it otherwise.
		tree: "supermicro-821ge", machine: "Supermicro SYS-821GE-TNHR", firmware: "11.01.01",
		works:   "the whole way",
		hosts:   []host{{id: "1", override: "/redfish/v1/Systems/1", boots: "Pxe", lists: 8}},
		restart: restart{at: "/redfish/v1/Managers/1", reason: "ResetComplete"},
	},
}
