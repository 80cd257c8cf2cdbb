package metalaw.selection.exclude_failing_hardware_test

import data.metalaw.selection
import data.metalaw.selection.exclude_failing_hardware as policy

server(health) := {"claim": {}, "candidate": {"health": health, "labels": {}}, "fleet": {}}

codes(health) := all if {
	all := {r.code | some r in selection.reject} with input as server(health)
}

test_failing_hardware_is_turned_away_with_the_code if {
	every health in policy.failing {
		"hardware-failing" in codes(health)
	}
}

test_other_hardware_is_not if {
	every health in {"OK", "Warning", "Critical", "Unknown"} - policy.failing {
		not "hardware-failing" in codes(health)
	}
}

test_what_is_not_known_says_nothing if not policy.rejects with input as {"candidate": {}}

test_the_parameters_make_sense if {
	count(policy.failing) > 0
	every health in policy.failing {
		health in {"Warning", "Critical", "Unknown"}
	}
}
