package metalaw.selection.tenancy_by_namespace_test

import data.metalaw.selection
import data.metalaw.selection.tenancy_by_namespace as policy

request(namespace, labels) := {"claim": {"namespace": namespace}, "candidate": {"health": "OK", "labels": labels}, "fleet": {}}

rejected(namespace, labels) if policy.rejects with input as request(namespace, labels)

of(tenant) := {policy.label: tenant}

test_another_tenants_server_is_turned_away_with_the_code if {
	codes := {r.code | some r in selection.reject} with input as request("nobody", of("a tenant without namespaces"))
	"other-tenant" in codes
}

test_the_reason_names_no_tenant if {
	messages := {r.message | some r in selection.reject; r.code == "other-tenant"} with input as request("nobody", of("secret"))
		with policy.namespaces as {}
	count(messages) > 0
	every message in messages {
		not contains(message, "secret")
	}
}

test_a_tenants_own_namespace_is_welcome if {
	not rejected("acme", of("acme")) with policy.namespaces as {}
	rejected("acme", of("ace")) with policy.namespaces as {}
}

test_a_tenant_may_have_several_namespaces if {
	not rejected("acme-dev", of("acme")) with policy.namespaces as {"acme": ["acme-dev", "acme-prod"]}
	rejected("acme", of("acme")) with policy.namespaces as {"acme": ["acme-dev", "acme-prod"]}
}

test_a_server_without_a_tenant_is_for_all if not rejected("acme", {})

test_a_server_with_an_empty_label_is_for_nobody if {
	rejected("acme", of(""))
	rejected("", {policy.label: ""}) with policy.namespaces as {"": []}
}

is_label_key(text) if {
	regex.match(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`, text)
	indexof(text, "/") <= 253
}

is_label_value(text) if regex.match(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`, text)

is_namespace(text) if regex.match(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`, text)

test_what_can_be_a_label_and_a_namespace if {
	every key in ["tenant", "example.com/tenant", "a.b-c.d/Tenant_of.it"] {
		is_label_key(key)
	}
	every key in ["", "a/b/c", "/tenant", "example.com/", "Example.com/tenant", "-tenant", "te nant", concat("", ["a", sprintf("%063d", [0])])] {
		not is_label_key(key)
	}
	is_label_value("")
	not is_label_value("a/b")
	is_namespace("acme-1")
	not is_namespace("Acme")
}

test_the_parameters_make_sense if {
	policy.label != ""

	# the key of a label is a name of at most 63 letters, digits, dashes, underscores and dots, with a domain in lower-case letters and one slash before it or without
	is_label_key(policy.label)
	object.get(policy.namespaces, "", []) == []

	# a tenant is the value of a label, of at most 63 letters, digits, dashes, underscores and dots, and has a list of namespaces, with names of at most 63 lower-case
	# letters, digits and dashes; patterns mean nothing here
	every tenant, names in policy.namespaces {
		is_label_value(tenant)
		is_array(names)
		every name in names {
			is_namespace(name)
		}
	}
}
