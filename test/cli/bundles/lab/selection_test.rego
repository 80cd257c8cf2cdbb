package metalaw.selection_test

import data.metalaw.selection

today := 20454

candidate := {
	"name": "a", "labels": {}, "health": "OK", "gpus": 0, "memoryGiB": 512,
	"rack": "r1", "availableDay": today,
}

fleet := {
	"today": today, "total": 8, "claimed": 3,
	"totalByRack": {"r1": 4, "r2": 4}, "claimedByRack": {"r1": 3},
}

with_candidate(changes) := {"claim": {}, "candidate": object.union(candidate, changes), "fleet": fleet}

test_a_healthy_server_is_allowed if {
	selection.allow with input as with_candidate({})
	count(selection.reject) == 0 with input as with_candidate({})
}

test_unknown_health_is_allowed if selection.allow with input as with_candidate({"health": "Unknown"})

test_critical_health_is_rejected_with_a_reason if {
	not selection.allow with input as with_candidate({"health": "Critical"})
	some reason in selection.reject with input as with_candidate({"health": "Critical"})
	reason.code == "unhealthy"
}

score(changes) := s if s := selection.score with input as with_candidate(changes)

test_a_warning_weighs_more_than_all_else if {
	score({"gpus": 8, "memoryGiB": 4096}) > score({"health": "Warning", "rack": "r2", "memoryGiB": 0, "availableDay": 0})
}

test_a_gpu_server_comes_last_among_equals if score({}) > score({"gpus": 1})

test_the_smaller_server_comes_first if score({"memoryGiB": 256}) > score({"memoryGiB": 1024})

test_memory_counts_in_steps if {
	steps := {0: 0, 127: 0, 128: 5, 256: 10, 512: 15, 1024: 20, 2048: 25}
	every memory, points in steps {
		score({"memoryGiB": memory}) == score({"memoryGiB": 0}) - points
	}
}

test_above_2_tib_memory_counts_no_more if score({"memoryGiB": 2048}) == score({"memoryGiB": 8192})

test_the_emptier_rack_comes_first if score({"rack": "r2"}) > score({"rack": "r1"})

test_an_unknown_rack_is_in_the_middle if {
	score({"rack": ""}) < score({"rack": "r2"})
	score({"rack": "new"}) > score({"rack": "r1"})
}

test_the_longest_rested_comes_first if score({"availableDay": today - 2}) > score({})

test_rest_is_bounded if {
	score({"availableDay": today - 10}) == score({"availableDay": 0})
	score({"availableDay": today - 9}) == score({"availableDay": 0}) - 1
}

test_the_score_of_a_plain_server if score({}) == 140
