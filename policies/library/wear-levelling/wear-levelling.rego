# Servers wear alike: the one that has had the fewest claims comes first.
#
# points are added to the score of selection.rego.
package metalaw.selection.wear_levelling

# Points for each claim that a server has had less than another. 100 is more than all that the built-in bundles give to a healthy
# server for its size, rack and rest.
weight := 100

# So many claims, or more, count alike.
most := 50

default points := 0

# A server that is failing comes last, however new it is.
points := weight * (most - input.candidate.timesClaimed) if {
	input.candidate.timesClaimed < most
	not failing
}

failing if input.candidate.health in {"Warning", "Critical"}
