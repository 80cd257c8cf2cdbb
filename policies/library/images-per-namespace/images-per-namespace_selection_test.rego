package metalaw.selection.images_per_namespace_test

import data.metalaw.lib.images_per_namespace as policy
import data.metalaw.selection

request := {"claim": {"namespace": "team", "image": "registry.example.com/other/linux:1"}, "candidate": {"health": "OK", "labels": {}}, "fleet": {}}

codes := all if {
	all := {r.code | some r in selection.reject} with input as request
}

test_no_server_goes_to_an_image_that_is_not_allowed if {
	"image-not-allowed" in codes with policy.images as {"team": ["registry.example.com/os/*"]}
}

test_one_that_is_allowed_gets_a_server if {
	not "image-not-allowed" in codes with policy.images as {"team": ["registry.example.com/other/*"]}
}
