// SPDX-License-Identifier: Apache-2.0

package schema

import "github.com/metalaw/metalaw/engine/bundle"

// maintenanceFields are those of the setting maintenance.
func maintenanceFields() object {
	labels := mapping(text("the value of a label"))
	cel := text("CEL over server, claim and maintenance that yields true or false")
	name := text("a name of its own")
	check := list(fields(object{"name": name, "must": cel,
		"within": span("how long it may fail until the maintenance is Failed; 0s for ever")}, "name", "must"))
	return fields(object{
		"unclaimed": words("when a server that no claim holds is granted", bundle.UnclaimedGrant, bundle.UnclaimedAfterRelease),
		"approval": words("whether an approval covers the maintenances that were asked for, or all of the claim",
			bundle.ApprovalPerMaintenance, bundle.ApprovalPerClaim),
		"enforcedNotice": span("how long the holder of a claim is told before an enforced maintenance begins"),
		"expected":       span("how long a maintenance is expected to take that does not say so"),
		"windows": list(fields(object{"name": name, "matchLabels": labels, "when": cel,
			"opens": text("when it opens: minute, hour, day of the month, month and day of the week"), "zone": text("the IANA time zone of opens"),
			"lasts": span("for how long it is open"), "least": span("how long it must still be open, however short a maintenance is")},
			"name", "opens", "lasts")),
		"limits": list(fields(object{"name": name, "matchLabels": labels, "per": text("rack, zone, region, claim.namespace or the key of a label"),
			"most": object{"description": "how many servers may be down",
				"anyOf": []any{count("", 1, 1000000), object{"type": "string", "pattern": `^([1-9][0-9]?|100)%$`}}}}, "name", "most")),
		"waves":  list(fields(object{"name": name, "matchLabels": labels, "pause": span("how long the next wave waits after this one")}, "name")),
		"checks": fields(object{"pre": check, "post": check}),
		"stop": fields(object{"failed": count("how many may fail until no more begin; 0 for any number", 0, 1000000),
			"overdue": count("how many may take longer than expected until no more begin; 0 for any number", 0, 1000000)}),
	})
}

// decommissionFields are those of the setting decommission.
func decommissionFields() object {
	return fields(object{
		"propose":           list(words("a fault for which a server is proposed", bundle.ProposeHealth, bundle.ProposeDisk, bundle.ProposeMemory)),
		"cordonMostPercent": count("how many of a model may be cordoned for that in a day, in percent", 0, 100),
	})
}
