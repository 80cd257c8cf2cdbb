package metalaw.selection.spread_over_racks_test

import data.metalaw.selection.spread_over_racks as policy

of(health, rack) := n if {
	n := policy.points with input as {
		"candidate": {"rack": rack, "health": health},
		"fleet": {"namespaceByRack": {"r1": 1, "r2": 3, "full": 100000}},
	}
}

points(rack) := of("OK", rack)

test_the_rack_with_the_fewest_of_the_namespace_comes_first if {
	points("new") > points("r1")
	points("r1") > points("r2")
	points("r2") > points("full")
}

test_each_server_of_the_namespace_weighs_the_same if points("r1") - points("r2") == 2 * policy.weight

test_a_full_rack_and_one_that_is_not_known_come_last if {
	points("full") == 0
	points("") == 0
}

test_a_failing_server_comes_last if {
	of("Warning", "new") == 0
	of("Critical", "new") == 0
	of("Unknown", "new") == points("new")
}

test_counts_that_are_not_known_say_nothing if policy.points == 0 with input as {"candidate": {"rack": "r1"}, "fleet": {}}

test_the_parameters_make_sense if {
	policy.weight > 0
	policy.most > 3
}
