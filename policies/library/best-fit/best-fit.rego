# The smallest server that does: what a claim does not need stays for one that does. Claims ask for hardware by labels and
# placement, so that among the servers which match, the one without GPUs and with the least memory and cores wastes the least.
#
# points are added to the score of selection.rego.
package metalaw.selection.best_fit

# The most points that memory brings, and that cores bring. Being without GPUs brings three times as many.
weight := 1000

# A server with so many GiB of memory, or more, gets no points for it.
memory := 2048

# A server with so many cores, or more, gets no points for them.
cores := 256

default points := 0

# A server of which memory or cores are not known may be the largest, and comes last. So does one that is failing, however small it is.
points := (plain + share(input.candidate.memoryGiB, memory)) + share(input.candidate.cores, cores) if {
	input.candidate.memoryGiB > 0
	input.candidate.cores > 0
	not failing
}

failing if input.candidate.health in {"Warning", "Critical"}

# More than what memory and cores bring together, so that the largest server without GPUs comes before the smallest with one.
plain := 0 if {
	input.candidate.gpus > 0
} else := 3 * weight

# The share of the largest that a server is smaller by, in whole points.
share(have, largest) := (left - (left % largest)) / largest if {
	have < largest
	left := weight * (largest - have)
} else := 0
