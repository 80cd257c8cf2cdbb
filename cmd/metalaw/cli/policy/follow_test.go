// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// at is a revision of bundle fleet with what its status says of it.
func at(name, digest, head, label, stage, reason, number, message string) policyv1alpha1.PolicyRevision {
	r := revision(name, number)
	r.Spec = policyv1alpha1.PolicyRevisionSpec{Bundle: "fleet", Digest: digest}
	r.Status = policyv1alpha1.PolicyRevisionStatus{Head: head, LabelledStage: policyv1alpha1.LabelledStage(label),
		Stage: policyv1alpha1.PolicyStage(stage), Conditions: []metav1.Condition{
			{Type: policyv1alpha1.ConditionActive, Reason: reason, Message: message}}}
	return r
}

func canaryOf(r policyv1alpha1.PolicyRevision, selector string, percent int32) policyv1alpha1.PolicyRevision {
	r.Status.Canary = &policyv1alpha1.CanaryStatus{Selector: selector, Percent: percent}
	return r
}

func TestWaitingEndsOnlyWithWhatWasAskedFor(t *testing.T) {
	former := at("b", "db", "hb", "Active", "Active", "InForce", "2", "")
	old := at("a", "da", "ha", "Draft", "Superseded", "Superseded", "1", "")
	draft := at("d", "dd", "ha", "Draft", "Draft", "NotPromoted", "", "")
	canary := at("a", "da", "ha", "Canary", "Canary", "NotPromoted", "", "")
	active := change{stage: "active"}
	for name, c := range map[string]struct {
		asked        change
		revision     string
		before, now  []policyv1alpha1.PolicyRevision
		done, failed bool
		words        string
	}{
		"the label was not seen yet": {active, "a", []policyv1alpha1.PolicyRevision{former, old}, []policyv1alpha1.PolicyRevision{former, old}, false, false, "a is Superseded"},
		"in force by another promotion": {active, "a", []policyv1alpha1.PolicyRevision{former, old},
			[]policyv1alpha1.PolicyRevision{at("a", "da", "ha", "Active", "Active", "InForce", "3", "")}, true, false, "a is Active"},
		"in force still, and its promotion has not risen": {active, "a", []policyv1alpha1.PolicyRevision{at("a", "da", "ha", "Shadow", "Active", "InForce", "2", "")},
			[]policyv1alpha1.PolicyRevision{at("a", "da", "ha", "Active", "Active", "InForce", "2", "")}, false, false, "a is Active"},
		"in force already by another ConfigMap": {active, "a", []policyv1alpha1.PolicyRevision{at("a", "da", "other", "Active", "Active", "InForce", "2", "")},
			[]policyv1alpha1.PolicyRevision{at("a", "da", "other", "Active", "Active", "InForce", "2", "")}, true, false, "a is Active"},
		"another revision appears in its stead": {active, "a", []policyv1alpha1.PolicyRevision{former, old},
			[]policyv1alpha1.PolicyRevision{at("x", "dx", "ha", "Active", "Active", "InForce", "3", ""), former, old}, false, true,
			"ConfigMap ha holds revision x by now"},
		"a draft that the ConfigMap held is none": {active, "a", []policyv1alpha1.PolicyRevision{former, old, draft},
			[]policyv1alpha1.PolicyRevision{former, old, draft}, false, false, "a is Superseded"},
		"another promotion came later": {active, "a", []policyv1alpha1.PolicyRevision{former, old},
			[]policyv1alpha1.PolicyRevision{at("a", "da", "ha", "Active", "Superseded", "Superseded", "1", "another revision was promoted later")}, false, true,
			"another revision was promoted later"},
		"another promotion came at the same time": {active, "a", []policyv1alpha1.PolicyRevision{former, old},
			[]policyv1alpha1.PolicyRevision{at("a", "da", "ha", "Active", "Superseded", "Conflict", "1", "")}, false, true, "Conflict"},
		"a manager has not compiled it yet": {active, "a", []policyv1alpha1.PolicyRevision{former, old},
			[]policyv1alpha1.PolicyRevision{at("a", "da", "ha", "Active", "Superseded", "AwaitingReplicas", "1", "m-1 has not compiled it yet")}, false, false, "m-1"},
		"a manager refuses it": {active, "a", []policyv1alpha1.PolicyRevision{former, old},
			[]policyv1alpha1.PolicyRevision{refused(at("a", "da", "ha", "Active", "Superseded", "AwaitingReplicas", "1", "m-1 refuses it: no"))}, false, true, "m-1 refuses it"},
		"the manager refuses what the ConfigMap holds": {active, "", []policyv1alpha1.PolicyRevision{draft},
			[]policyv1alpha1.PolicyRevision{headed(draft, policyv1alpha1.LabelledHead{Name: "ha", Stage: policyv1alpha1.LabelledDraft, Problem: "VersionTaken"})}, false, true,
			"ConfigMap ha changes nothing: VersionTaken"},
		"nothing came of it yet": {active, "", nil, nil, false, false, "is one running"},
		"a canary with its old scope": {change{stage: "canary", percent: 50}, "", []policyv1alpha1.PolicyRevision{canaryOf(canary, "", 5)},
			[]policyv1alpha1.PolicyRevision{canaryOf(canary, "", 5)}, false, false, "a is Canary"},
		"a canary with the scope": {change{stage: "canary", servers: "rack=r1", percent: 50}, "", []policyv1alpha1.PolicyRevision{canaryOf(canary, "", 5)},
			[]policyv1alpha1.PolicyRevision{canaryOf(canary, "rack=r1", 50)}, true, false, "a is Canary"},
		"what is in force stays it as a shadow": {change{stage: "shadow"}, "", []policyv1alpha1.PolicyRevision{at("a", "da", "ha", "Active", "Active", "InForce", "2", "")},
			[]policyv1alpha1.PolicyRevision{at("a", "da", "ha", "Shadow", "Active", "InForce", "2", "it stays in force")}, false, true, "it stays in force"},
		"a draft without a revision": {change{stage: "draft"}, "", nil, nil, true, false, "no revision of a draft"},
	} {
		t.Run(name, func(t *testing.T) {
			q := request{change: c.asked, head: "ha", bundle: "fleet", digest: "da", revision: c.revision, before: c.before}
			if got := q.look(c.now); got.done != c.done || got.failed != c.failed || !strings.Contains(got.words, c.words) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// refused is a revision that a running manager refuses.
func refused(r policyv1alpha1.PolicyRevision) policyv1alpha1.PolicyRevision {
	r.Status.Loaded = []policyv1alpha1.LoadedRevision{{Replica: "m-1", Outcome: policyv1alpha1.LoadedRefused}}
	return r
}

func headed(r policyv1alpha1.PolicyRevision, heads ...policyv1alpha1.LabelledHead) policyv1alpha1.PolicyRevision {
	r.Status.Heads = heads
	return r
}

// A head that was labelled active before is labelled so anew: what the manager has seen of the former activation does not count.
func TestWaitingForAnActivationThatIsMadeAnew(t *testing.T) {
	former := policyv1alpha1.LabelledHead{Name: "ha", Stage: policyv1alpha1.LabelledActive, ActivatedBy: "jane 1"}
	anew := former
	anew.ActivatedBy = "jane 2"
	unrecorded := former
	unrecorded.ActivatedBy = ""
	superseded := at("a", "da", "ha", "Active", "Superseded", "Superseded", "1", "")
	inForce := at("a", "da", "ha", "Active", "Active", "InForce", "1", "")
	again := at("a", "da", "ha", "Active", "Active", "InForce", "3", "")
	for name, c := range map[string]struct {
		record       string
		before, now  policyv1alpha1.PolicyRevision
		done, failed bool
	}{
		"not seen yet, and superseded still":         {"jane 2", headed(superseded, former), headed(superseded, former), false, false},
		"nor where the former one had no record":     {"jane 2", headed(superseded, unrecorded), headed(superseded, unrecorded), false, false},
		"seen, and in force":                         {"jane 2", headed(superseded, former), headed(again, anew), true, false},
		"seen, and superseded by yet another":        {"jane 2", headed(superseded, former), headed(superseded, anew), false, true},
		"of the one in force, not seen yet":          {"jane 2", headed(inForce, former), headed(inForce, former), false, false},
		"of the one in force, seen":                  {"jane 2", headed(inForce, former), headed(again, anew), true, false},
		"of the one in force, where nobody records":  {"", headed(inForce, former), headed(again, former), true, false},
		"not where nothing was promoted, unrecorded": {"", headed(inForce, former), headed(inForce, former), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			q := &request{change: change{stage: "active"}, head: "ha", bundle: "fleet", digest: "da", anew: true, record: c.record,
				before: []policyv1alpha1.PolicyRevision{c.before}}
			if p := q.look([]policyv1alpha1.PolicyRevision{c.now}); p.done != c.done || p.failed != c.failed {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestWaitingForOneOfTwoConfigMapsWithTheSameContent(t *testing.T) {
	whole := policyv1alpha1.LabelledHead{Name: "whole", Stage: policyv1alpha1.LabelledActive, Digest: "da"}
	slim := policyv1alpha1.LabelledHead{Name: "slim", Stage: policyv1alpha1.LabelledShadow, Digest: "ds"}
	before := headed(at("a", "da", "whole", "Active", "Superseded", "Superseded", "1", ""), slim, whole)
	q := &request{change: change{stage: "active"}, head: "slim", bundle: "fleet", digest: "ds", before: []policyv1alpha1.PolicyRevision{before}}
	if p := q.look([]policyv1alpha1.PolicyRevision{before}); p.done || p.failed {
		t.Errorf("before the manager has seen the label: %+v", p)
	}
	slim.Stage = policyv1alpha1.LabelledActive
	now := headed(at("a", "da", "slim", "Active", "Active", "InForce", "3", ""), slim, whole)
	if p := q.look([]policyv1alpha1.PolicyRevision{now}); !p.done || p.failed {
		t.Errorf("in force: %+v", p)
	}
	if !only([]policyv1alpha1.PolicyRevision{now}, &now, "fleet", "ds") {
		t.Error("rollback does not know the ConfigMap that holds it")
	}
}
