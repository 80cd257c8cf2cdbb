package metalaw.admission.images_per_namespace_test

import data.metalaw.admission
import data.metalaw.lib.images_per_namespace as policy

claim(image) := {"metadata": {"namespace": "team", "name": "c"}, "spec": {"power": "On", "image": image}}

request(operation, object, former) := {
	"operation": operation, "kind": "ServerClaim", "object": object, "oldObject": former,
	"user": {"name": "jane", "groups": []}, "facts": {},
}

denied(asked) if {
	codes := {d.code | some d in admission.deny} with input as asked
		with policy.images as {"team": ["registry.example.com/os/*"]}
	"image-not-allowed" in codes
}

good := claim("registry.example.com/os/linux:1")

other := claim("registry.example.com/other/linux:1")

test_an_image_that_is_not_allowed_is_denied if {
	denied(request("CREATE", other, {}))
	denied(request("UPDATE", other, good))
}

test_one_that_is_allowed_passes if {
	not denied(request("CREATE", good, {}))
	not denied(request("UPDATE", good, other))
}

test_what_is_stored_is_not_held_against_another_change if not denied(request("UPDATE", other, other))

test_a_claim_can_always_go if not denied(request("DELETE", {}, other))

test_a_claim_without_image_is_told_by_other_rules if not denied(request("CREATE", {"metadata": {"namespace": "team"}, "spec": {}}, {}))
