# A share of each zone's servers is kept free for the claims that matter most.
#
# A server for which rejects holds is turned away by selection.rego.
package metalaw.selection.reserve_per_zone

# How many of a zone's servers are kept free, in percent of all that it has, in whatever state. A part of a server is a whole one.
percent := 10

# Claims of this priority or a higher one may have them. Keep claims.priority.max in bundle.yaml below it, or every namespace can ask for it.
priority := 100

# Claims with this label may have them as well. Whoever may create claims may label them: leave it empty where that is too many.
label := ""

# The value that the label must have.
value := "true"

default entitled := false

entitled if input.claim.priority >= priority

entitled if {
	label != ""
	object.get(input.claim.labels, label, "") == value
}

# A server is turned away where, without it, fewer would be free than are kept. Servers without a zone are not counted.
rejects if {
	not entitled
	free := object.get(input.fleet.freeByZone, input.candidate.zone, 0)
	free > 0
	(free - 1) * 100 < percent * object.get(input.fleet.totalByZone, input.candidate.zone, 0)
}
