# A server that bears a tenant's label goes to the namespaces of that tenant alone. A server without the label is for all.
#
# A server for which rejects holds is turned away by selection.rego.
package metalaw.selection.tenancy_by_namespace

# The label of a Server that names its tenant.
label := "example.com/tenant"

# The namespaces of each tenant. A tenant that is not named here has the namespace of its own name.
namespaces := {}

rejects if {
	tenant := input.candidate.labels[label]
	not welcome(tenant)
}

# An empty label names no tenant that anybody could be: such a server goes to nobody.
welcome(tenant) if input.claim.namespace in object.get(namespaces, tenant, [tenant])
