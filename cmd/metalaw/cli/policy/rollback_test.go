// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

// withPromotion is a revision that came into force by another promotion.
func withPromotion(r policyv1alpha1.PolicyRevision, number string) policyv1alpha1.PolicyRevision {
	r.Annotations = map[string]string{policyv1alpha1.PromotionAnnotation: number}
	return r
}

// headNamed is the head of a bundle with a file of its own.
func headNamed(name, stage string) *corev1.ConfigMap {
	head := headAt(stage)
	head.Name, head.Data = name, map[string]string{"bundle.yaml": name}
	return head
}

// A manager that is starting over and over compiles nothing, so that the first rollback stays under way while it is called again.
func TestARollbackThatIsCalledAgainIsTheSame(t *testing.T) {
	const waits = "it waits until every running manager has compiled it: m-1 has not compiled it yet"
	for name, c := range map[string]struct {
		again rollout
		// stands is the label of the former head before the first rollback, and first the labels that it sets.
		stands      string
		first       []string
		fails, says string
	}{
		"with --yes": {rollout{yes: true}, "shadow", []string{"active"}, "",
			"fleet-1: revision b is on its way into force already (" + waits + "); nothing was changed\n"},
		"with nobody to ask": {rollout{}, "shadow", []string{"active"}, "",
			"fleet-1: revision b is on its way into force already (" + waits + "); nothing was changed\n"},
		"where it was labelled active all along": {rollout{yes: true}, "active", []string{"draft", "active"}, "",
			"fleet-1: revision b is on its way into force already (" + waits + "); nothing was changed\n"},
		"and waits for the same": {rollout{yes: true, wait: true}, "shadow", []string{"active"},
			"it did not come about within 1ms: revision b is Superseded (AwaitingReplicas: " + waits + "). ConfigMap fleet-1 is labelled active, so that " +
				"it stays asked for; to withdraw it while it is not in force: `metalaw policy promote fleet-1 --stage shadow -n ns`",
			"fleet-1: revision b is on its way into force already (" + waits + "); nothing was changed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			heads := []*corev1.ConfigMap{headNamed("fleet-0", "active"), headNamed("fleet-1", c.stands), headNamed("fleet-2", "active")}
			revisionAt := func(name string, of int, label, stage, reason, number, message string) policyv1alpha1.PolicyRevision {
				digest, _, err := digestOf(t.Context(), nil, heads[of])
				if err != nil {
					t.Fatal(err)
				}
				return stored(at(name, digest, heads[of].Name, label, stage, reason, number, message), int64(of))
			}
			a := revisionAt("a", 0, "Active", "Superseded", "Superseded", "1", "")
			b := revisionAt("b", 1, "Active", "Superseded", "Superseded", "2", "")
			inForce := revisionAt("c", 2, "Active", "Active", "InForce", "3", "")
			api, stages := admitting(t, true, nil, heads[0], heads[1], heads[2], &a, &b, &inForce)

			term, _, _ := quiet()
			if err := (&rollout{namespace: "ns", yes: true, timeout: time.Minute}).goBack(t.Context(), term, api, ""); err != nil {
				t.Fatal(err)
			}
			b.Status = revisionAt("b", 1, "Active", "Superseded", "AwaitingReplicas", "2", waits).Status
			if err := api.Update(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			c.again.namespace, c.again.timeout = "ns", time.Millisecond
			term, out, _ := quiet()
			err := c.again.goBack(t.Context(), term, api, "")
			if diff := cmp.Diff(c.fails, failure(err)) + cmp.Diff(c.says, out.String()) + cmp.Diff(c.first, *stages); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The manager has not noted yet which ConfigMap was made when somebody goes back again.
func TestARollbackThatIsCalledAgainMakesNoSecondConfigMap(t *testing.T) {
	for name, c := range map[string]struct {
		// stands is a ConfigMap of the revision's name that was there before, by what it holds; empty where there is none.
		stands string
		want   []string
	}{
		"of a revision whose ConfigMap is gone":     {"", []string{"b"}},
		"beside one of its name with other content": {"other", []string{"b", "b-2"}},
		"where one of its name holds it already":    {"its own", []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := bundle.Files{"bundle.yaml": []byte("its own")}.Pack()
			if err != nil {
				t.Fatal(err)
			}
			holds := &corev1.ConfigMap{Data: map[string]string{"bundle.yaml": "its own"}}
			digest, _, err := digestOf(t.Context(), nil, holds)
			if err != nil {
				t.Fatal(err)
			}
			b := stored(at("b", digest, "gone", "Active", "Superseded", "Superseded", "2", ""), 1)
			b.Spec.Content = content
			inForce := stored(at("c", "dc", "fleet-2", "Active", "Active", "InForce", "3", ""), 2)
			objects := []client.Object{&b, &inForce}
			if c.stands != "" {
				head := headAt("shadow")
				head.Name, head.Data = "b", map[string]string{"bundle.yaml": c.stands}
				objects = append(objects, head)
			}
			api, _ := admitting(t, true, nil, objects...)
			term, _, _ := quiet()
			for range 2 {
				if err := (&rollout{namespace: "ns", yes: true, timeout: time.Minute}).goBack(t.Context(), term, api, ""); err != nil {
					t.Fatal(err)
				}
			}
			var all corev1.ConfigMapList
			if err := api.List(t.Context(), &all); err != nil {
				t.Fatal(err)
			}
			var names []string
			for i := range all.Items {
				names = append(names, all.Items[i].Name)
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPromotionThatIsAskedForAgainIsLeftAsItIs(t *testing.T) {
	const early, late = "jane sha256:1 2026-11-22T13:00:00.5Z", "jane sha256:1 2026-11-22T13:00:00.6Z"
	pending := at("a", emptyDigest, "fleet-1", "Active", "Shadow", "AwaitingReplicas", "", "m-1 has not compiled it yet")
	for name, c := range map[string]struct {
		stage  string
		others []client.Object
		stages []string
	}{
		"while it waits":                         {"active", nil, []string{}},
		"but not where the label says otherwise": {"shadow", nil, []string{"active"}},
		"nor where another was labelled since":   {"active", []client.Object{headBeside(late)}, []string{"draft", "active"}},
		"nor while another promotion waits as well": {"active", []client.Object{pointer(at("b", "db", "fleet-2", "Active", "Shadow", "AwaitingReplicas", "", ""))},
			[]string{"draft", "active"}},
	} {
		t.Run(name, func(t *testing.T) {
			head := headAt(c.stage)
			head.Annotations[policyv1alpha1.ActivatedByAnnotation] = early
			api, stages := admitting(t, true, nil, append(c.others, head, pointer(pending))...)
			term, out, _ := quiet()
			err := (&rollout{timeout: time.Minute}).apply(t.Context(), term, api, head, change{stage: policyv1alpha1.LabelActive}, "")
			if diff := cmp.Diff(c.stages, *stages); err != nil || diff != "" || strings.Contains(out.String(), "already") != (len(c.stages) == 0) {
				t.Error(err, diff, out)
			}
		})
	}
}
