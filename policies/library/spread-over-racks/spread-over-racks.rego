# The claims of a namespace stand in as many racks as can be: that server comes first whose rack has the fewest of them.
#
# points are added to the score of selection.rego.
package metalaw.selection.spread_over_racks

# Points for each server that the namespace has less of in a rack. 100 is more than all that the built-in bundles give to a healthy
# server for its size, rack and rest.
weight := 100

# So many servers of the namespace in one rack, or more, count alike.
most := 20

default points := 0

# A server whose rack is not known may stand in the fullest one, and comes last. So does one that is failing, however empty its rack is.
points := weight * (most - have) if {
	input.candidate.rack != ""
	have := object.get(input.fleet.namespaceByRack, input.candidate.rack, 0)
	have < most
	not failing
}

failing if input.candidate.health in {"Warning", "Critical"}
