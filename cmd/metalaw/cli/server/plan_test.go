// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func verbNamed(t *testing.T, name string) verb {
	t.Helper()
	for _, v := range verbs {
		if v.name == name {
			return v
		}
	}
	t.Fatalf("no verb %s", name)
	return verb{}
}

// aServer is in Error, held by the claim shop/web with UID u1.
func aServer(changes ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{v1alpha1.ClaimUIDAnnotation: "u1"}}}
	s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
	s.Status.State = v1alpha1.StateError
	for _, change := range changes {
		change(s)
	}
	return s
}

func annotated(pairs ...string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		for i := 0; i < len(pairs); i += 2 {
			s.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func free(s *v1alpha1.Server) {
	s.Spec.ServerClaimRef = nil
	delete(s.Annotations, v1alpha1.ClaimUIDAnnotation)
}

func records(name string, state v1alpha1.OperationState) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Status.Operation = &v1alpha1.OperationStatus{ID: "op1", Name: name, State: state, By: "bob", Reason: "why not"}
	}
}

// theClaim is shop/web; server is the one that it names, if any.
func theClaim(uid types.UID, server string) holders {
	c := v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid}}
	if server != "" {
		c.Spec.ServerRef = &corev1.LocalObjectReference{Name: server}
	}
	return holders{c}
}

func TestWhatARequestComesTo(t *testing.T) {
	written := func(s *v1alpha1.Server) {
		s.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "metalaw", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
			{Manager: "kubectl-annotate", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:metal.ironcore.dev/operation":{}}}}`)},
		}
	}
	for name, c := range map[string]struct {
		verb    string
		server  *v1alpha1.Server
		claims  holders
		to      string
		outcome string
		message string
	}{
		"a retry is asked, with what the server was when it was asked": {
			"retry", aServer(), nil, "", "asked", "retry; it was in Error, held by shop/web"},
		"a server that nobody holds": {
			"retry", aServer(free), nil, "", "asked", "retry; it was in Error"},
		"an operation that stands is not overwritten, and admission knows whose it is": {
			"retry", aServer(annotated(v1alpha1.OperationAnnotation, "park", v1alpha1.OperationByAnnotation, "alice", v1alpha1.OperationReasonAnnotation, "fan")),
			nil, "", "refused", `operation park is asked for already by alice ("fan"); wait until the manager has taken it in`},
		"an operation that stands, where admission was not asked": {
			"retry", aServer(annotated(v1alpha1.OperationAnnotation, "park"), written),
			nil, "", "refused", `operation park is asked for already by field manager kubectl-annotate; wait until the manager has taken it in`},
		"a server that is to be ignored": {
			"park", aServer(annotated(v1alpha1.OperationAnnotation, "ignore")), nil, "", "refused",
			"operation ignore is asked for already; the server is left alone until that is taken away: kubectl annotate server s metal.ironcore.dev/operation-"},
		"a server that is to be ignored, in a word that this version does not know": {
			"park", aServer(annotated(v1alpha1.OperationAnnotation, "ignore-for-audit")), nil, "", "refused",
			"operation ignore-for-audit is asked for already; " +
				"the server is left alone until that is taken away: kubectl annotate server s metal.ironcore.dev/operation-"},
		"a server that its BMC holds": {
			"park", aServer(annotated(v1alpha1.HeldByBMCAnnotation, "b1")), nil, "", "refused",
			"BMC b1 asks to leave its Servers alone; the server is left alone until that is taken away: " +
				"kubectl annotate bmc b1 metal.ironcore.dev/operation-"},
		"the same operation is under way": {
			"park", aServer(records("park", v1alpha1.OperationInProgress)), nil, "", "refused", `park is under way already (InProgress) by bob ("why not")`},
		"another operation is under way, which the manager sorts out": {
			"park", aServer(records("retry", v1alpha1.OperationPending)), nil, "", "asked", "park; it was in Error, held by shop/web"},
		"the same operation has ended": {
			"park", aServer(records("park", v1alpha1.OperationSucceeded)), nil, "", "asked", "park; it was in Error, held by shop/web"},
		"a release while the claim exists": {
			"release", aServer(), theClaim("u1", ""), "", "refused", "claim shop/web exists; delete it instead: kubectl delete serverclaim -n shop web"},
		"a release while the claim exists, and somebody cleared the reference to it": {
			"release", aServer(func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }), theClaim("u1", "s"), "",
			"refused", "claim shop/web exists; delete it instead: kubectl delete serverclaim -n shop web"},
		"a release while another claim has the name": {
			"release", aServer(), theClaim("u2", ""), "", "asked", "release; it was in Error, held by shop/web"},
		"a release by somebody who may not read claims": {
			"release", aServer(), nil, "", "asked", "release; it was in Error, held by shop/web"},
		"a force to another state": {
			"force", aServer(free), nil, "Available", "asked", "force to Available; it was in Error"},
		"a force to the state that it is in": {
			"force", aServer(), nil, "Error", "refused", "it is in Error already"},
		"a cordon": {
			"cordon", aServer(), nil, "", "done", "takes no new claim"},
		"a cordon of a cordoned server": {
			"cordon", aServer(func(s *v1alpha1.Server) { s.Spec.Unclaimable = true }), nil, "", "unchanged", "takes no new claim"},
		"a cordon while an operation stands, which it does not touch": {
			"cordon", aServer(annotated(v1alpha1.OperationAnnotation, "park")), nil, "", "done", "takes no new claim"},
		"an uncordon of a free server": {
			"uncordon", aServer(), nil, "", "unchanged", "takes claims again"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &request{verb: verbNamed(t, c.verb), to: c.to}
			got := r.plan(c.server, c.claims)
			if got.Outcome != c.outcome || got.Message != c.message {
				t.Errorf("got %s %q, want %s %q", got.Outcome, got.Message, c.outcome, c.message)
			}
		})
	}
}

func TestWhoHoldsAServer(t *testing.T) {
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		want   string
	}{
		"the claim that it names":                        {aServer(), "shop/web"},
		"the last holder, where nothing is named":        {aServer(func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }), "claim u1"},
		"somebody, where there may be data of theirs":    {aServer(free, func(s *v1alpha1.Server) { s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Marks: []string{"Dirty"}} }), "unknown"},
		"nobody, where it is clean and nothing is named": {aServer(free), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := holder(c.server); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
