# Servers wear alike: the one that has had the fewest claims comes first.
#
# points are added to the score of selection.rego.
package metalaw.selection.wear_levelling

# Points for each claim that a server has had less than another.
weight := 1

# So many claims, or more, count alike.
most := 50

default points := 0

points := weight * (most - input.candidate.timesClaimed) if input.candidate.timesClaimed < most
