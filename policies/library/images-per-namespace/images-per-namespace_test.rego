package metalaw.lib.images_per_namespace_test

import data.metalaw.lib.images_per_namespace as policy

table := {"team": ["registry.example.com/os/*", "registry.example.com/rescue:1"], "nobody": []}

allowed(namespace, image) if policy.allows(namespace, image) with policy.images as table with policy.others as ["registry.example.com/public/*"]

test_a_pattern_allows_what_begins_like_it if {
	allowed("team", "registry.example.com/os/linux:1.2")
	allowed("team", "registry.example.com/os/linux@sha256:00ff")
	not allowed("team", "registry.example.com/other/linux:1.2")
	not allowed("team", "registry.example.com/os")
}

test_a_whole_reference_allows_itself_alone if {
	allowed("team", "registry.example.com/rescue:1")
	not allowed("team", "registry.example.com/rescue:11")
}

test_other_namespaces_have_the_images_of_all_others if {
	allowed("else", "registry.example.com/public/linux:1")
	not allowed("else", "registry.example.com/os/linux:1.2")
	not allowed("team", "registry.example.com/public/linux:1")
}

test_a_namespace_may_have_none if not allowed("nobody", "registry.example.com/public/linux:1")

test_two_dots_lead_nowhere if {
	not allowed("team", "registry.example.com/os/../other/linux:1")
	not allowed("team", "registry.example.com/os/..")
	allowed("team", "registry.example.com/os/linux:1..2")
}

test_a_star_alone_is_every_image if {
	policy.allows("any", "registry.example.com/os/linux:1..2") with policy.images as {} with policy.others as ["*"]
	policy.allows("any", "linux") with policy.images as {} with policy.others as ["*"]
}

test_the_words_name_the_images if {
	words := policy.words("team") with policy.images as table
	words == "claims of namespace team may not boot this image, but: registry.example.com/os/*, registry.example.com/rescue:1"
}

test_the_words_of_a_namespace_that_may_boot_none if {
	words := policy.words("nobody") with policy.images as table
	words == "claims of namespace nobody may boot no image at all"
}

# What a star stands for must not be a part of the registry's name.
closed(pattern) if not endswith(pattern, "*")

closed("*")

closed(pattern) if {
	parts := split(trim_suffix(pattern, "*"), "://")
	contains(parts[count(parts) - 1], "/")
}

test_a_star_within_the_name_of_a_registry_makes_no_sense if {
	every pattern in ["*", "registry.example.com/*", "registry.example.com/os/linux:1.*", "https://example.com/*", "linux:1"] {
		closed(pattern)
	}
	every pattern in ["registry.example.com*", "linux*", "linux:*", "https://example.com*"] {
		not closed(pattern)
	}
}

is_namespace(text) if regex.match(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`, text)

test_the_parameters_make_sense if {
	# the name of a namespace has at most 63 lower-case letters, digits and dashes; patterns mean nothing here
	every namespace, _ in policy.images {
		is_namespace(namespace)
	}

	# a pattern is a whole reference, one that goes up to a slash and further and ends with a star, or a star alone
	every _, patterns in object.union(policy.images, {"": policy.others}) {
		is_array(patterns)
		every pattern in patterns {
			pattern != ""
			not contains(trim_suffix(pattern, "*"), "*")
			closed(pattern)
		}
	}
}
