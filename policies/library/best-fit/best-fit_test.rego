package metalaw.selection.best_fit_test

import data.metalaw.selection.best_fit as policy

points(memory, cores) := n if n := policy.points with input as {"candidate": {"memoryGiB": memory, "cores": cores}}

# The parameters' values may be changed: an eighth and a quarter of the largest.
small := policy.memory / 8

few := policy.cores / 8

test_less_memory_comes_first if points(small, few) > points(2 * small, few)

test_fewer_cores_come_first if points(small, few) > points(small, 2 * few)

test_memory_and_cores_weigh_the_same if points(2 * small, few) == points(small, 2 * few)

test_the_largest_and_what_is_larger_get_none if {
	points(policy.memory, policy.cores) == 0
	points(8 * policy.memory, 8 * policy.cores) == 0
}

test_a_server_that_is_not_known_comes_last if {
	points(0, few) == 0
	points(small, 0) == 0
	policy.points == 0 with input as {"candidate": {"memoryGiB": small}}
}

test_points_are_whole_numbers if {
	n := points(policy.memory - 1, policy.cores - 1)
	n == round(n)
}

test_the_parameters_make_sense if {
	policy.weight >= 16
	policy.memory >= 8
	policy.cores >= 8
}
