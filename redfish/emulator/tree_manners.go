// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"strings"
)

// manners are how a make answers writes, which no captured tree can show. Each field names its source in treeManners.
type manners struct {
	// maker is the field of the service root's Oem, or its Vendor.
	maker string
	// patchWantsTag answers 428 to a PATCH without If-Match.
	patchWantsTag bool
	// bootInSettings answers 400 to a boot override that is not sent to the settings resource.
	bootInSettings bool
	// modeIsReadOnly answers 400 to BootSourceOverrideMode.
	modeIsReadOnly bool
	// modeReverts sets the mode to Legacy where a boot override does not name it.
	modeReverts bool
	// actionRefusesTag answers 412 to an action that carries If-Match.
	actionRefusesTag bool
	// resetStatus and alreadyStatus answer a reset that is carried out, and one that leads where the system is; 0: 204.
	resetStatus, alreadyStatus int
}

// treeManners is the table. A make that is not in it does what DSP0266 says: If-Match is honoured and not asked for.
var treeManners = []manners{
	// If-Match: stmcginnis/gofish issue 171 (Ami.1.0.PreconditionHeaderMissing) and NVIDIA/libredfish, which fetches the entity
	// tag of Systems/DGX/SD before each PATCH. Settings: DMTF/Redfish-Tacklebox issue 144 (OperationSupportedInFutureStateURI).
	{maker: "Ami", patchWantsTag: true, bootInSettings: true},
	// stmcginnis/gofish pull request 510 and ironcore-dev/metal-operator issue 1015.
	{maker: "Dell", actionRefusesTag: true},
	// Mode: ansible-collections/community.general issue 3509. Reset: the answers shown in goldyfruit/ansible-ilo issue 1.
	{maker: "Hpe", modeIsReadOnly: true, resetStatus: http.StatusOK, alreadyStatus: http.StatusBadRequest},
	// DMTF/Redfishtool pull request 106: the mode falls back to the default where a client does not name it.
	{maker: "Supermicro", modeReverts: true},
}

// mannersOf chooses by the service root.
func mannersOf(service doc) manners {
	oem := object(service, "Oem")
	for _, m := range treeManners {
		if _, named := oem[m.maker]; named || strings.EqualFold(text(service, "Vendor"), m.maker) {
			return m
		}
	}
	return manners{}
}

func (m manners) apply(p *Profile) {
	p.ActionRefusesIfMatch = m.actionRefusesTag
	if m.resetStatus != 0 {
		p.ResetStatus = m.resetStatus
	}
	if m.alreadyStatus != 0 {
		p.AlreadyStatus = m.alreadyStatus
	}
}
