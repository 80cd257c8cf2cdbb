# The claims of a namespace stand in as many racks as can be: that server comes first whose rack has the fewest of them.
#
# points are added to the score of selection.rego.
package metalaw.selection.spread_over_racks

# Points for each server that the namespace has less of in a rack.
weight := 5

# So many servers of the namespace in one rack, or more, count alike.
most := 20

default points := 0

# A server whose rack is not known may stand in the fullest one, and comes last.
points := weight * (most - have) if {
	input.candidate.rack != ""
	have := object.get(input.fleet.namespaceByRack, input.candidate.rack, 0)
	have < most
}
