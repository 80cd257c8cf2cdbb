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

test_the_parameters_make_sense if {
	policy.label != ""
	object.get(policy.namespaces, "", []) == []
	every _, names in policy.namespaces {
		is_array(names)
	}
}
