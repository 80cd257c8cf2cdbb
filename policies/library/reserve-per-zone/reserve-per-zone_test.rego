package metalaw.selection.reserve_per_zone_test

import data.metalaw.selection
import data.metalaw.selection.reserve_per_zone as policy

request(free, claim) := {
	"claim": object.union({"priority": policy.priority - 1, "labels": {}}, claim),
	"candidate": {"zone": "z1", "health": "OK", "labels": {}},
	"fleet": {"freeByZone": {"z1": free}, "totalByZone": {"z1": 100}},
}

rejected(free, claim) if policy.rejects with input as request(free, claim)

test_what_is_kept_is_turned_away_with_the_code if {
	codes := {r.code | some r in selection.reject} with input as request(1, {})
	"zone-reserved" in codes
}

test_so_many_stay_free_as_the_percentage_says if {
	rejected(10, {}) with policy.percent as 10
	not rejected(11, {}) with policy.percent as 10
	not rejected(1, {}) with policy.percent as 0
	rejected(100, {}) with policy.percent as 100
}

test_a_share_of_a_server_is_a_whole_one if {
	rejected(3, {}) with policy.percent as 2.5
	not rejected(4, {}) with policy.percent as 2.5
}

test_who_has_the_priority_may_have_them if {
	not rejected(1, {"priority": policy.priority})
	not rejected(1, {"priority": policy.priority + 1})
}

test_who_has_the_label_may_have_them if {
	not rejected(1, {"labels": {"example.com/vital": "yes"}}) with policy.label as "example.com/vital" with policy.value as "yes"
	rejected(1, {"labels": {"example.com/vital": "no"}}) with policy.label as "example.com/vital" with policy.value as "yes"
	rejected(1, {"labels": {"": "true"}}) with policy.label as "" with policy.value as "true"
}

test_a_server_that_is_not_free_is_judged_by_other_rules if not rejected(0, {})

test_a_server_without_a_zone_is_not_kept if {
	not policy.rejects with input as object.union(request(1, {}), {"candidate": {"zone": ""}})
}

test_counts_that_are_not_known_say_nothing if {
	not policy.rejects with input as object.union(object.remove(request(1, {}), ["fleet"]), {"fleet": {}})
}

is_label_key(text) := regex.match(
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`,
	text,
)

is_label_value(text) := regex.match(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`, text)

test_the_parameters_make_sense if {
	policy.percent > 0
	policy.percent < 100
	policy.priority == round(policy.priority)

	# every claim has a priority of -1000 or more, so that nothing would be kept
	policy.priority > -1000

	# no claim has a priority above 1000, so that without a label nobody could have what is kept
	true in [policy.priority <= 1000, policy.label != ""]

	# the key of a label is a name of at most 63 letters, digits, dashes, underscores and dots, with a domain in lower-case letters and one slash before it or without
	true in [policy.label == "", is_label_key(policy.label)]
	policy.value != ""

	# the value of a label has at most 63 letters, digits, dashes, underscores and dots, and begins and ends with a letter or a digit
	is_label_value(policy.value)
}
