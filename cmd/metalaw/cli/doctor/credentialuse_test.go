// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// shippedRoles are the ClusterRoles of a file of config/rbac.
func shippedRoles(t *testing.T, file string) []rbacv1.ClusterRole {
	t.Helper()
	text, err := os.ReadFile("../../../../config/rbac/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var all []rbacv1.ClusterRole
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" {
			all = append(all, role)
		}
	}
	return all
}

// bound binds a ClusterRole to "Kind name" or "ServiceAccount namespace/name".
func bound(role string, subjects ...string) rbacv1.ClusterRoleBinding {
	b := rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}}
	for _, s := range subjects {
		kind, name, _ := strings.Cut(s, " ")
		subject := rbacv1.Subject{Kind: kind, Name: name}
		if namespace, name, is := strings.Cut(name, "/"); is {
			subject.Namespace, subject.Name = namespace, name
		}
		b.Subjects = append(b.Subjects, subject)
	}
	return b
}

func TestLacking(t *testing.T) {
	roles := append(shippedRoles(t, "fleet-clusterroles.yaml"), shippedRoles(t, "manager-clusterrole.yaml")...)
	roles = append(roles,
		rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fedhcp"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"metal.ironcore.dev"}, Resources: []string{"endpoints"}, Verbs: []string{"*"}}}},
		rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}},
		rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:controller:generic-garbage-collector"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "patch", "update"}}}},
		rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"endpoints"}, Verbs: []string{"update"}}}},
	)
	const fedhcp = "ServiceAccount fedhcp/fedhcp"
	for name, c := range map[string]struct {
		bindings []rbacv1.ClusterRoleBinding
		want     []string
	}{
		"the shipped roles that write and may not": {[]rbacv1.ClusterRoleBinding{
			bound("metalaw-uuid-assigner", "User uma"), bound("metalaw-server-forcer", "User fred"), bound("metalaw-server-sanitizer", "Group cleaners"),
			bound("metalaw-server-decommissioner", "User dora"), bound("metalaw-disk-attester", "User ann"),
		}, []string{"Group cleaners", "User ann", "User dora", "User fred", "User uma"}},
		"the shipped roles that write and may": {[]rbacv1.ClusterRoleBinding{
			bound("metalaw-manager", "ServiceAccount metalaw-system/metalaw-manager"), bound("metalaw-fleet-operator", "User olga"),
			bound("metalaw-onboarder", "User otto"), bound("cluster-admin", "Group admins"),
		}, nil},
		"those that do not write":           {[]rbacv1.ClusterRoleBinding{bound("metalaw-fleet-viewer", "User vera"), bound("other", "User joe")}, nil},
		"FeDHCP":                            {[]rbacv1.ClusterRoleBinding{bound("fedhcp", fedhcp)}, []string{fedhcp}},
		"FeDHCP with its binding":           {[]rbacv1.ClusterRoleBinding{bound("fedhcp", fedhcp), bound("metalaw-credential-user", fedhcp)}, nil},
		"one that a group of it has":        {[]rbacv1.ClusterRoleBinding{bound("fedhcp", fedhcp), bound("metalaw-credential-user", "Group system:serviceaccounts:fedhcp")}, nil},
		"a controller of Kubernetes itself": {[]rbacv1.ClusterRoleBinding{bound("system:controller:generic-garbage-collector", "ServiceAccount kube-system/generic-garbage-collector")}, nil},
		"a role that is gone":               {[]rbacv1.ClusterRoleBinding{bound("gone", "User gil")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lacking(roles, c.bindings)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCredentialUse(t *testing.T) {
	const role = "bind ClusterRole metalaw-credential-user to those that decide where passwords go (FeDHCP: kubectl apply -k config/fedhcp)"
	const who = "1 subjects may write Endpoints, BMCs or Servers and lack the verb use on bmcsecrets: User uma"
	for name, c := range map[string]struct {
		mode    string
		lacking []string
		err     error
		want    finding
	}{
		"on, and a user lacks it": {"on", []string{"User uma"}, nil, finding{Verdict: Passed, Remedy: role,
			Message: "the Deployment says --credential-use=on, and refuses them where a password would go elsewhere; " + who}},
		"not set, and a user lacks it": {"", []string{"User uma"}, nil, finding{Verdict: Warned, Remedy: role + ", then set --credential-use=on",
			Message: "the Deployment says --credential-use=warn, and refuses nothing; " + who}},
		"off": {"off", nil, nil, finding{Verdict: Warned, Remedy: "set --credential-use=on",
			Message: "the Deployment says --credential-use=off, and refuses nothing; no subject lacks the verb use on bmcsecrets"}},
		"the roles cannot be read": {"on", nil, errors.New("forbidden"), finding{Verdict: Unknown, Message: "cannot be read: forbidden",
			Remedy: "see to what the error says, and run it again"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := view{manager: managerState{CredentialUse: c.mode}, credentialUse: credentialState{c.lacking}, credentialUseErr: c.err}
			c.want.Check = "credential use"
			if diff := cmp.Diff(c.want, checkCredentialUse(v)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
