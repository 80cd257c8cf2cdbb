// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func maintenance(change ...func(*v1alpha1.ServerMaintenance)) *v1alpha1.ServerMaintenance {
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "m"},
		Spec: v1alpha1.ServerMaintenanceSpec{ServerRef: corev1.LocalObjectReference{Name: "s1"}}}
	for _, c := range change {
		c(m)
	}
	return m
}

func enforced(m *v1alpha1.ServerMaintenance) {
	m.Spec.Policy = v1alpha1.ServerMaintenancePolicyEnforced
}

func boots(m *v1alpha1.ServerMaintenance) {
	m.Spec.ServerBootConfigurationTemplate = &v1alpha1.ServerBootConfigurationTemplate{Name: "t"}
}

// server is held by claim db of a namespace, whose UID is on record where it is given; by none where namespace is empty.
func server(namespace, uid string) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s1"}}
	if namespace != "" {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: namespace, Name: "db"}
	}
	if uid != "" {
		s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: uid}
	}
	return s
}

func claim(namespace string, uid types.UID) *v1alpha1.ServerClaim {
	return &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db", UID: uid}}
}

func TestNeeded(t *testing.T) {
	both := func(m *v1alpha1.ServerMaintenance) { enforced(m); boots(m) }
	const dirty = true
	for name, c := range map[string]struct {
		maintenance *v1alpha1.ServerMaintenance
		server      *v1alpha1.Server
		claim       *v1alpha1.ServerClaim
		dirty       bool
		want        []string
	}{
		"a server that its own namespace claims takes none":          {maintenance(), server("team", "u"), claim("team", "u"), dirty, nil},
		"so does one whose holder is not on record":                  {maintenance(), server("team", ""), claim("team", "u"), dirty, nil},
		"a free server takes maintain":                               {maintenance(), server("", ""), nil, !dirty, []string{"maintain"}},
		"a server that another namespace claims takes maintain":      {maintenance(), server("other", "u"), claim("other", "u"), dirty, []string{"maintain"}},
		"a claim that is gone gives none":                            {maintenance(), server("team", "u"), nil, dirty, []string{"maintain"}},
		"a claim of its name with another UID gives none":            {maintenance(), server("team", "u"), claim("team", "v"), dirty, []string{"maintain"}},
		"a claim that the server does not name gives none":           {maintenance(), server("", ""), claim("team", "u"), !dirty, []string{"maintain"}},
		"a server that is not known takes maintain":                  {maintenance(), nil, nil, !dirty, []string{"maintain"}},
		"enforcing takes enforce":                                    {maintenance(enforced), server("team", "u"), claim("team", "u"), !dirty, []string{"enforce"}},
		"also on a free server":                                      {maintenance(enforced), server("", ""), nil, !dirty, []string{"maintain", "enforce"}},
		"a boot on a claimed server takes boot-maintenance":          {maintenance(boots), server("team", "u"), claim("team", "u"), !dirty, []string{"boot-maintenance"}},
		"a boot on a server whose claim is gone, too":                {maintenance(boots), server("team", "u"), nil, !dirty, []string{"maintain", "boot-maintenance"}},
		"a boot on a Dirty server, too":                              {maintenance(boots), server("", ""), nil, dirty, []string{"maintain", "boot-maintenance"}},
		"a boot on a server that is not known, too":                  {maintenance(boots), nil, nil, !dirty, []string{"maintain", "boot-maintenance"}},
		"a boot on a free and clean server takes maintain alone":     {maintenance(boots), server("", ""), nil, !dirty, []string{"maintain"}},
		"an enforced boot on the server of another takes all rights": {maintenance(both), server("other", "u"), claim("other", "u"), dirty, []string{"maintain", "enforce", "boot-maintenance"}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []Right
			for _, verb := range c.want {
				want = append(want, Right{Verb: verb, Resource: "servers", Name: "s1"})
			}
			if diff := cmp.Diff(want, Needed(c.maintenance, c.server, c.claim, c.dirty)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDirty(t *testing.T) {
	marked := &v1alpha1.Server{Status: v1alpha1.ServerStatus{Lifecycle: &v1alpha1.LifecycleStatus{Marks: []string{v1alpha1.MarkDirty}}}}
	remembers := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Marks: []string{v1alpha1.MarkDirty}}}
	for name, c := range map[string]struct {
		server    *v1alpha1.Server
		inventory *policyv1alpha1.ServerInventory
		want      bool
	}{
		"by its mark":              {marked, nil, true},
		"by its inventory":         {&v1alpha1.Server{}, remembers, true},
		"not without a mark":       {&v1alpha1.Server{}, &policyv1alpha1.ServerInventory{}, false},
		"not without an inventory": {&v1alpha1.Server{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Dirty(c.server, c.inventory); got != c.want {
				t.Error(got)
			}
		})
	}
}

func TestEachRightNamesTheRoleThatGivesIt(t *testing.T) {
	for verb, want := range map[string]string{
		"maintain":         `user "jane" lacks the verb maintain on servers.metal.ironcore.dev "s1", which ClusterRole metalaw-maintainer gives`,
		"enforce":          `user "jane" lacks the verb enforce on servers.metal.ironcore.dev "s1", which ClusterRole metalaw-maintenance-enforcer gives`,
		"boot-maintenance": `user "jane" lacks the verb boot-maintenance on servers.metal.ironcore.dev "s1", which ClusterRole metalaw-maintenance-booter gives`,
	} {
		if got := (Right{verb, "servers", "s1"}).Lacks("jane"); got != want {
			t.Error(got)
		}
	}
}

// reviewer keeps what it is asked, and answers.
type reviewer struct {
	client.Writer
	asked   authorizationv1.SubjectAccessReviewSpec
	allowed bool
	err     error
}

func (r *reviewer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	review := o.(*authorizationv1.SubjectAccessReview)
	r.asked = review.Spec
	review.Status.Allowed = r.allowed
	return r.err
}

func TestAskAsksAsWhomTheMakerWasAuthenticated(t *testing.T) {
	r := &reviewer{allowed: true}
	maker := Maker{Username: "jane", UID: "7", Groups: []string{"ops"}, Extra: map[string][]string{"example.com/scopes": {"a", "b"}}}
	got, err := Ask(t.Context(), r, maker, Right{"maintain", "servers", "s1"})
	if err != nil || !got {
		t.Error(got, err)
	}
	want := authorizationv1.SubjectAccessReviewSpec{User: "jane", UID: "7", Groups: []string{"ops"},
		Extra: map[string]authorizationv1.ExtraValue{"example.com/scopes": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "maintain", Group: "metal.ironcore.dev", Resource: "servers", Name: "s1"}}
	if diff := cmp.Diff(want, r.asked); diff != "" {
		t.Error(diff)
	}
}

func TestAnAPIServerThatDoesNotAnswerIsAnError(t *testing.T) {
	if _, err := Ask(t.Context(), &reviewer{err: errors.New("down")}, Maker{Username: "jane"}, Right{"enforce", "servers", "s1"}); err == nil ||
		err.Error() != `whether user "jane" may enforce servers cannot be told: down` {
		t.Error(err)
	}
}

func TestTheShippedRolesGiveEachRight(t *testing.T) {
	text, err := os.ReadFile("../../config/rbac/fleet-clusterroles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, verb := range []string{VerbMaintain, VerbEnforce, VerbBoot} {
				if slices.Contains(rule.Verbs, verb) && slices.Contains(rule.Resources, servers) && slices.Contains(rule.APIGroups, v1alpha1.GroupVersion.Group) {
					got[verb] = append(got[verb], role.Name)
				}
			}
		}
	}
	want := map[string][]string{
		// Whoever runs the fleet powers servers anyway.
		VerbMaintain: {"metalaw-fleet-operator", Right{Verb: VerbMaintain}.Role()},
		VerbEnforce:  {Right{Verb: VerbEnforce}.Role()},
		VerbBoot:     {Right{Verb: VerbBoot}.Role()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
