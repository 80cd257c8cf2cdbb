package metalaw.admission_test

import data.metalaw.admission

claim(spec) := {
	"operation": "CREATE", "kind": "ServerClaim", "oldObject": {},
	"object": {"metadata": {"namespace": "admission-test", "name": "c"}, "spec": spec},
	"user": {"name": "jane", "groups": []}, "facts": {},
}

denials(request) := codes if {
	codes := {d.code | some d in admission.deny} with input as request
}

warnings(request) := codes if {
	codes := {w.code | some w in admission.warn} with input as request
}

good := "registry.example.com:5000/os/linux:1.2"

test_a_plain_claim_passes_in_silence if {
	denials(claim({"power": "On", "image": good})) == set()
	warnings(claim({"power": "On", "image": good})) == set()
}

test_a_claim_without_image_is_denied if {
	denials(claim({"power": "On"})) == {"image-missing"}
	denials(claim({"power": "On", "image": " \n"})) == {"image-missing"}
	warnings(claim({"power": "On"})) == set()
}

test_a_denial_names_its_field if {
	some d in admission.deny with input as claim({})
	d.field == "spec.image"
}

test_an_image_with_white_space_is_denied if denials(claim({"image": "os/linux :1"})) == {"image-malformed"}

test_an_image_without_tag_draws_a_warning if {
	warnings(claim({"image": "linux"})) == {"image-not-pinned"}
	warnings(claim({"image": "registry.example.com:5000/os/linux"})) == {"image-not-pinned"}
}

test_a_digest_is_as_good_as_a_tag if warnings(claim({"image": "os/linux@sha256:00ff"})) == set()

test_an_empty_selector_key_is_denied if {
	denials(claim({"image": good, "serverSelector": {"matchLabels": {"": "x"}}})) == {"selector-key-empty"}
	denials(claim({"image": good, "serverSelector": {"matchExpressions": [{"operator": "Exists"}]}})) == {"selector-key-empty"}
}

test_a_selector_with_keys_passes_in_silence if {
	request := claim({"image": good, "serverSelector": {"matchLabels": {"rack": "r1"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}})
	denials(request) == set()
	warnings(request) == set()
}

test_an_empty_selector_draws_a_warning if {
	warnings(claim({"image": good, "serverSelector": {}})) == {"selector-empty"}
	warnings(claim({"image": good, "serverSelector": {}, "serverRef": {"name": "a"}})) == set()
}

test_deletions_and_other_kinds_are_left_alone if {
	denials({"operation": "DELETE", "kind": "ServerClaim", "object": {}, "oldObject": claim({}).object}) == set()
	denials({"operation": "CREATE", "kind": "Server", "object": {"spec": {}}, "oldObject": {}}) == set()
}
