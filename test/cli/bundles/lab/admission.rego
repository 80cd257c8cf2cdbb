# What is refused or warned about when somebody creates, changes or deletes an object.
#
# metalaw's own rules (states, immutable fields, uniqueness, data-guarding annotations) hold besides these and cannot be
# switched off. These rules see one request:
#
#   input.operation   CREATE, UPDATE or DELETE
#   input.kind        ServerClaim, Server, Endpoint, BMC, BMCSecret, ServerBootConfiguration
#   input.object      the object as it would be stored; {} on DELETE
#   input.oldObject   the object as it is stored; {} on CREATE
#   input.user        name and groups of who asks
#   input.facts       what metalaw knows besides; the keys depend on the kind
#
# Fields of an object may be absent: a rule that reads one that is not there does not fire, which is why the rules below
# read with object.get where absence matters. Never put a Secret's data into a message.
#
#   deny              refuses the request: a set of {"code", "message"} with an optional "field", a path such as spec.image
#   warn              lets it pass and shows the message to who asked
package metalaw.admission

claim_spec := object.get(input.object, "spec", {}) if {
	input.kind == "ServerClaim"
	input.operation != "DELETE"
}

image := object.get(claim_spec, "image", "")

deny contains {
	"code": "image-missing",
	"message": "a claim needs an image to boot; name one in spec.image",
	"field": "spec.image",
} if {
	trim_space(image) == ""
}

deny contains {
	"code": "image-malformed",
	"message": "the image contains white space; write a reference such as registry.example.com/os/linux:1.2",
	"field": "spec.image",
} if {
	trim_space(image) != ""
	regex.match(`\s`, image)
}

# A tag such as latest, or none at all, may name another image at the next boot.
warn contains {
	"code": "image-not-pinned",
	"message": "the image has neither a tag nor a digest, so that what boots can change at any time; add one to spec.image",
	"field": "spec.image",
} if {
	trim_space(image) != ""
	not contains(image, "@")
	not contains(last_segment(image), ":")
}

# The part behind the last slash: a colon before it belongs to the registry's port.
last_segment(reference) := segments[count(segments) - 1] if {
	segments := split(reference, "/")
}

selector := object.get(claim_spec, "serverSelector", {})

selector_keys contains key if some key, _ in object.get(selector, "matchLabels", {})

selector_keys contains key if {
	some expression in object.get(selector, "matchExpressions", [])
	key := object.get(expression, "key", "")
}

deny contains {
	"code": "selector-key-empty",
	"message": "the selector has an empty key, which no server's label can match; name the label",
	"field": "spec.serverSelector",
} if {
	some key in selector_keys
	trim_space(key) == ""
}

# serverSelector: {} looks like a mistake as often as it is meant.
warn contains {
	"code": "selector-empty",
	"message": "the selector is empty and matches every server; leave serverSelector out if that is meant",
	"field": "spec.serverSelector",
} if {
	"serverSelector" in object.keys(claim_spec)
	count(selector_keys) == 0
	object.get(claim_spec, ["serverRef", "name"], "") == ""
}
