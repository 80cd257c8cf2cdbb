# The smallest server that does: what a claim does not need stays for one that does. Claims ask for hardware by labels and
# placement, so that among the servers which match, the one with the least memory and cores wastes the least.
#
# points are added to the score of selection.rego.
package metalaw.selection.best_fit

# The most points that memory brings, and that cores bring.
weight := 100

# A server with so many GiB of memory, or more, gets no points for it.
memory := 2048

# A server with so many cores, or more, gets no points for them.
cores := 256

default points := 0

# A server of which one of both is not known may be the largest, and comes last.
points := share(input.candidate.memoryGiB, memory) + share(input.candidate.cores, cores) if {
	input.candidate.memoryGiB > 0
	input.candidate.cores > 0
}

# The share of the largest that a server is smaller by, in whole points.
share(have, largest) := (left - (left % largest)) / largest if {
	have < largest
	left := weight * (largest - have)
} else := 0
