package metalaw.selection.best_fit_test

import data.metalaw.selection.best_fit as policy

server(memory, cores) := {"memoryGiB": memory, "cores": cores, "health": "OK", "gpus": 0}

of(candidate) := n if n := policy.points with input as {"candidate": candidate}

points(memory, cores) := of(server(memory, cores))

# The parameters' values may be changed: an eighth and a quarter of the largest.
small := policy.memory / 8

few := policy.cores / 8

test_less_memory_comes_first if points(small, few) > points(2 * small, few)

test_fewer_cores_come_first if points(small, few) > points(small, 2 * few)

test_memory_and_cores_weigh_the_same if points(2 * small, few) == points(small, 2 * few)

test_what_is_larger_than_the_largest_counts_like_it if points(policy.memory, policy.cores) == points(8 * policy.memory, 8 * policy.cores)

test_the_largest_without_gpus_comes_before_the_smallest_with_one if {
	points(policy.memory, policy.cores) > of(object.union(server(1, 1), {"gpus": 1}))
}

test_of_servers_with_gpus_the_smallest_comes_first if {
	of(object.union(server(small, few), {"gpus": 8})) > of(object.union(server(2 * small, few), {"gpus": 8}))
}

test_a_failing_server_comes_last if {
	every health in {"Warning", "Critical"} {
		of(object.union(server(small, few), {"health": health})) == 0
	}
	of(object.union(server(small, few), {"health": "Unknown"})) == points(small, few)
}

test_a_server_that_is_not_known_comes_last if {
	points(0, few) == 0
	points(small, 0) == 0
	of({"memoryGiB": small}) == 0
}

test_points_are_whole_numbers if {
	n := points(policy.memory - 1, policy.cores - 1)
	n == round(n)
}

# Below, the score of the built-in bundles would put a small server with GPUs first.
test_the_parameters_make_sense if {
	policy.weight >= 32
	policy.memory >= 8
	policy.cores >= 8
}
