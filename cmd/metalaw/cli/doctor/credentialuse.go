// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/rights"
	"github.com/metalaw/metalaw/webhooks/credentials"
)

// credentialState is who may decide where passwords go.
type credentialState struct {
	// Lacking are the subjects whose roles allow that and do not have the verb for it, sorted.
	Lacking []string
}

// credentialUse reads the roles of the cluster. The objects in question have no namespace, so that RoleBindings give nothing.
func (r reader) credentialUse(ctx context.Context) (credentialState, error) {
	var roles rbacv1.ClusterRoleList
	if err := r.List(ctx, &roles); err != nil {
		return credentialState{}, err
	}
	var bindings rbacv1.ClusterRoleBindingList
	if err := r.List(ctx, &bindings); err != nil {
		return credentialState{}, err
	}
	return credentialState{lacking(roles.Items, bindings.Items)}, nil
}

// lacking are the subjects that may write Endpoints, BMCs or Servers and may use no BMCSecret. Kubernetes' own controllers, which
// may write every object, change no spec of ours.
func lacking(roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) []string {
	rules := map[string][]rbacv1.PolicyRule{}
	for i := range roles {
		rules[roles[i].Name] = roles[i].Rules
	}
	held := map[string][]rbacv1.PolicyRule{}
	subjects := map[string]rbacv1.Subject{}
	for i := range bindings {
		b := &bindings[i]
		if strings.HasPrefix(b.Name, "system:controller:") {
			continue
		}
		for _, s := range b.Subjects {
			subjects[subjectName(s)] = s
			held[subjectName(s)] = append(held[subjectName(s)], rules[b.RoleRef.Name]...)
		}
	}
	var all []string
	for name, s := range subjects {
		has := slices.Clone(held[name])
		for _, group := range groupsOf(s) {
			has = append(has, held["Group "+group]...)
		}
		writes := allows(held[name], []string{"create", "update", "patch"}, []string{"endpoints", "bmcs", "servers"})
		if writes && !allows(has, []string{rights.VerbUse}, []string{rights.BMCSecrets}) {
			all = append(all, name)
		}
	}
	return slices.Sorted(slices.Values(all))
}

func subjectName(s rbacv1.Subject) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return s.Kind + " " + s.Namespace + "/" + s.Name
	}
	return s.Kind + " " + s.Name
}

// groupsOf are the groups that Kubernetes itself puts a subject into.
func groupsOf(s rbacv1.Subject) []string {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + s.Namespace}
	case rbacv1.UserKind:
		return []string{"system:authenticated"}
	}
	return nil
}

// allows says that rules give one of the verbs on one of the resources of our group.
func allows(rules []rbacv1.PolicyRule, verbs, resources []string) bool {
	one := func(given, wanted []string) bool {
		return slices.ContainsFunc(given, func(g string) bool { return g == "*" || slices.Contains(wanted, g) })
	}
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return one(r.APIGroups, []string{metalv1alpha1.GroupVersion.Group}) && one(r.Resources, resources) && one(r.Verbs, verbs)
	})
}

// checkCredentialUse says whom admission refuses, or would refuse, where a password goes.
func checkCredentialUse(v view) finding {
	const check = "credential use"
	if v.credentialUseErr != nil {
		return unread(check, v.credentialUseErr)
	}
	mode := cmp.Or(v.manager.CredentialUse, string(credentials.Warn))
	runs := "the Deployment says --credential-use=" + mode
	if v.managerErr != nil {
		runs = "how the manager runs is not known"
	}
	names := v.credentialUse.Lacking
	who := fmt.Sprintf("%d subjects may write Endpoints, BMCs or Servers and lack the verb use on bmcsecrets: %s", len(names), strings.Join(names, ", "))
	bind := "bind ClusterRole " + rights.Right{Verb: rights.VerbUse}.Role() + " to those that decide where passwords go (FeDHCP: kubectl apply -k config/fedhcp)"
	switch {
	case len(names) == 0 && mode == string(credentials.On):
		return finding{check, Passed, runs + "; each subject that may write Endpoints, BMCs or Servers has the verb use on bmcsecrets", ""}
	case len(names) == 0:
		return finding{check, Warned, runs + ", and refuses nothing; no subject lacks the verb use on bmcsecrets", "set --credential-use=on"}
	case mode == string(credentials.On):
		return finding{check, Passed, runs + ", and refuses them where a password would go elsewhere; " + who, bind}
	default:
		return finding{check, Warned, runs + ", and refuses nothing; " + who, bind + ", then set --credential-use=on"}
	}
}
