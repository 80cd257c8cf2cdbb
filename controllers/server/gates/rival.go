// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/machineid"
)

// RivalHolds says why no agent is booted while another BMC shows the UUID of the server; empty where one may be. A
// machine that its own BMC proves, or a person, is held by no other BMC.
func RivalHolds(bmc string, inventory *policyv1alpha1.ServerInventory, rivals []policyv1alpha1.RivalBMC) string {
	if len(rivals) == 0 || provedBesides(inventory, rivals) {
		return ""
	}
	names := make([]string, 0, len(rivals))
	for _, r := range rivals {
		names = append(names, r.Name)
	}
	return fmt.Sprintf("BMC %s and BMC %s show the same UUID, and nothing proves which machine boots; "+
		"no agent is booted. Correct one UUID, or answer for the machine: metalaw server prove", bmc, strings.Join(names, ", "))
}

// provedBesides says that the machine which reported last is known in spite of what the rivals show.
func provedBesides(inventory *policyv1alpha1.ServerInventory, rivals []policyv1alpha1.RivalBMC) bool {
	if inventory == nil || inventory.Identity == nil {
		return false
	}
	id := inventory.Identity.DeepCopy()
	id.Rivals = rivals
	report, reported := machineid.Of(inventory)
	if !reported && id.Proved != nil {
		report = id.Proved.ReportedIdentity
	}
	verdict := machineid.Judge(machineid.Input{Identity: id, Report: report, Others: machineid.Rivals(id)})
	byPerson := verdict.ByPerson || id.Proved != nil && id.Proved.By != ""
	return verdict.Proves() && (verdict.ByBMC || byPerson)
}

// IdentityStanding says what is not known of a server's machine: the reason of condition IdentityUnproven and its
// message; empty where nothing is to be said. A machine of which the BMC was not read yet is not known, which is no
// finding.
func IdentityStanding(bmc string, inventory *policyv1alpha1.ServerInventory) (reason, message string) {
	if inventory == nil || inventory.Identity == nil {
		return "", ""
	}
	id := inventory.Identity
	report, reported := machineid.Of(inventory)
	verdict := machineid.Judge(machineid.Input{Identity: id, Report: report, Others: machineid.Rivals(id)})
	switch {
	case id.Refused != nil && id.Settled == nil:
		return v1alpha1.ReasonMachineContradicts, fmt.Sprintf("An agent that named this server was refused: %s. "+
			"Stop that machine, or, where hardware was replaced, answer for it: metalaw server prove", id.Refused.Reason)
	case RivalHolds(bmc, inventory, id.Rivals) != "":
		return v1alpha1.ReasonRivalBMC, RivalHolds(bmc, inventory, id.Rivals)
	case !reported || id.BMC == nil:
		return "", ""
	case verdict.Kind == machineid.Contradicts:
		return v1alpha1.ReasonMachineContradicts, fmt.Sprintf("Its last report is of another machine: %s. "+
			"A wipe of it is refused. Inspect it again, or answer for it: metalaw server prove", verdict.Reason)
	}
	why, judged := verdict.Reason, inventory.Report.Identity
	doubted := judged != nil && judged.Verdict == policyv1alpha1.IdentityUnproven
	if verdict.Proves() && (!doubted || id.Proved != nil && id.Proved.By != "") {
		return "", ""
	}
	if doubted {
		why = judged.Reason
	}
	return v1alpha1.ReasonMachineUnproven, fmt.Sprintf("Nothing proves its machine: %s. "+
		"Under wipe.identity: Proved its disks are not erased. Answer for it: metalaw server prove", why)
}
