# The claims of a namespace boot the images that it may boot, and no others.
#
# admission.rego refuses a claim whose image allows does not allow, and selection.rego turns all servers away from one that was
# stored while nobody could be asked.
package metalaw.lib.images_per_namespace

# The images of each namespace: whole references, or their beginning and a star, such as registry.example.com/os/*. The beginning
# holds a slash, because registry.example.com* would also be registry.example.com.evil.example; a star alone is every image.
images := {}

# The images of all other namespaces.
others := ["*"]

allowed(namespace) := object.get(images, namespace, others)

allows(namespace, image) if {
	some pattern in allowed(namespace)
	matches(pattern, image)
}

matches(pattern, image) if pattern == image

matches("*", _)

# A path that goes up would lead out of the place that a pattern names.
matches(pattern, image) if {
	endswith(pattern, "*")
	startswith(image, trim_suffix(pattern, "*"))
	not contains(image, "/..")
}

# The same words at admission and in the condition of a claim. A long list is cut.
words(namespace) := sprintf("claims of namespace %s may boot no image at all", [namespace]) if {
	count(allowed(namespace)) == 0
} else := sprintf("claims of namespace %s may not boot this image, but: %s", [
	namespace,
	substring(concat(", ", allowed(namespace)), 0, 240),
])
