package metalaw.selection.wear_levelling_test

import data.metalaw.selection.wear_levelling as policy

of(health, times) := n if n := policy.points with input as {"candidate": {"timesClaimed": times, "health": health}}

points(times) := of("OK", times)

test_the_server_with_the_fewest_claims_comes_first if {
	points(0) > points(1)
	points(1) > points(2)
}

test_each_claim_weighs_the_same if points(0) - points(2) == 2 * policy.weight

test_above_the_most_claims_count_no_more if {
	points(policy.most) == 0
	points(policy.most + 1) == 0
}

test_a_failing_server_comes_last if {
	of("Warning", 0) == 0
	of("Critical", 0) == 0
	of("Unknown", 0) == points(0)
}

test_what_is_not_known_says_nothing if policy.points == 0 with input as {"candidate": {}}

test_the_parameters_make_sense if {
	policy.weight > 0
	policy.most > 2
}
