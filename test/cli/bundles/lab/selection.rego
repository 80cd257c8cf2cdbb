# Which servers a claim may have, and which of them it gets first.
#
# Every candidate already fulfils the hard contract, which no policy can loosen: it is Available, off, not claimed, not
# cordoned and not dirty, it matches the claim's selector or serverRef, and its taints are tolerated. These rules see one
# candidate at a time:
#
#   input.claim       who asks: namespace, name, labels, annotations, priority, image, ...
#   input.candidate   the server: labels, manufacturer, cores, memoryGiB, diskBytes, health, rack, ...
#   input.fleet       counts over all servers, and `now` and `today`
#
# All fields always exist; what is not known is "" or 0. A label may be absent: read it with object.get.
#
# metalaw asks for three rules:
#
#   allow             true lets the candidate pass
#   reject            a set of {"code", "message"}: turns the candidate away and says why. The code is counted and shown in
#                     the claim's condition, so keep the number of codes small and name no other tenant in a message.
#   score             a number; the highest wins, equal ones are ordered by name
package metalaw.selection

# Rules of plain comparisons and whole numbers are evaluated over a whole fleet in a millisecond. metalaw policy verify warns
# of those that are not, such as comprehensions.
allow if input.candidate.health != "Critical"

# The words for what allow leaves out.
reject contains {
	"code": "unhealthy",
	"message": "its BMC reports health Critical",
} if {
	input.candidate.health == "Critical"
}

# The parts of the score, heaviest first: a healthy server before one with a warning (100), the smallest that does
# (0 to 50), a rack with much left (0 to 20), and the one that has waited longest (0 to 10). All are whole numbers:
# fractions cost several times as much. Each part is a rule of its own that reads one or two fields, so that it is computed
# once for all candidates that agree in them.
score := ((health + fit) + spread) + rest

default health := 100

health := 0 if input.candidate.health == "Warning"

# Best fit: what a claim does not need stays for one that does. Claims ask for hardware by labels, so among the servers
# that match, GPUs count most against a server (25), then memory (up to 25).
fit := 50 - (gpus + memory)

default gpus := 0

gpus := 25 if input.candidate.gpus > 0

default memory := 0

memory := 25 if {
	input.candidate.memoryGiB >= 2048
} else := 20 if {
	input.candidate.memoryGiB >= 1024
} else := 15 if {
	input.candidate.memoryGiB >= 512
} else := 10 if {
	input.candidate.memoryGiB >= 256
} else := 5 if {
	input.candidate.memoryGiB >= 128
}

# Spread: the free share of the candidate's rack, in twentieths. A server of an unknown rack is in the middle.
default spread := 10

spread := (free - (free % total)) / total if {
	total := input.fleet.totalByRack[input.candidate.rack]
	total > 0
	free := 20 * (total - object.get(input.fleet.claimedByRack, input.candidate.rack, 0))
}

# Rest: one point for each day in Available, up to ten, so that wear is shared. Days are few where seconds are many: servers
# of which the rules read the same are judged once.
default rest := 10

rest := days if {
	days := input.fleet.today - input.candidate.availableDay
	days < 10
}
