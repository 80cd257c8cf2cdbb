// SPDX-License-Identifier: Apache-2.0

package emulator

// evidence is what a profile follows.
type evidence struct {
	// tree is the captured tree with which the profile agrees in what that shows; empty where there is none.
	tree string
	// but names the fields in which the profile differs from the tree, and why.
	but map[string]string
	// documents are what the profile follows besides: answers to writes, which no tree shows, and machines without a tree here.
	documents string
}

// profileEvidence has a row for each profile. A profile without evidence is an assumption, and a test refuses it.
var profileEvidence = map[string]evidence{
	ProfileGeneric: {documents: "DMTF DSP0266 and the schemas of DSP0268: a BMC that does what they ask, and nothing else"},
	ProfileDell: {tree: "dell-r750-idrac9",
		but: map[string]string{
			"FirmwareVersion": "iDRAC9 7.x, which has a settings resource that 6.00 has not",
			"SettingsID":      "iDRAC9 7.x shows BootOrder, BootSourceOverrideMode, UefiTargetBootSourceOverride and StopBootOnFault at /Settings",
			"LockoutAfter":    "the captured BMC locks nobody out, and tests need one that does",
		},
		documents: "412 for If-Match on an action: stmcginnis/gofish pull request 510; account slots: the tree lists 16"},
	ProfileHPE: {tree: "hpe-dl325-ilo5",
		but:       map[string]string{"TrailingSlash": "the captured BMC ends the links of its BIOS resources in a slash, others all of them"},
		documents: "answers to resets: goldyfruit/ansible-ilo issue 1; sessions of 30 s are seen on some iLO"},
	ProfileSupermicro: {tree: "supermicro-821ge",
		documents: "the mode has to be named with an override: DMTF/Redfishtool pull request 106"},
	ProfileLenovo: {tree: "lenovo-sr670v2-xcc",
		but: map[string]string{"LockoutAfter": "the captured BMC locks nobody out, and tests need one that does"}},
	ProfileOpenBMC: {tree: "openbmc-stock",
		but: map[string]string{
			"FirmwareVersion": "2.14, as on the machine below",
			"Manufacturer":    "a Quanta S7Q runs the same software, and shows an inventory that the captured emulation of a machine lacks",
			"Model":           "as Manufacturer", "UUID": "as Manufacturer", "NoSystemNICs": "as Manufacturer",
			"LockoutAfter": "the captured BMC locks nobody out, and tests need one that does",
		},
		documents: "openbmc/bmcweb, which has no entity tags and answers a PATCH with 204"},
	ProfileAMI: {documents: "Systems/Self and boot settings at /SD: DMTF/Redfish-Tacklebox issues 111 and 144; " +
		"428 without If-Match: stmcginnis/gofish issue 171; the tree nvidia-dgx-h100 is of the same maker"},
	ProfileDGX: {tree: "nvidia-dgx-h100", documents: "answers to writes: as ami"},
	ProfileGB200: {tree: "nvidia-gb200",
		but:       map[string]string{"LockoutAfter": "the captured BMC locks nobody out, and tests need one that does"},
		documents: "answers to writes: as openbmc"},
	ProfileCray: {tree: "cray-ex235n",
		but: map[string]string{"FirmwareVersion": "its manager shows none, and its firmware inventory shows this one"}},
}
