// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// naming is a claim that names its server, and was never bound to it.
func naming(server string, more ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
	c := aMember("web", func(c *v1alpha1.ServerClaim) {
		c.Annotations, c.Spec.ServerRef = nil, &corev1.LocalObjectReference{Name: server}
	})
	for _, change := range more {
		change(&c)
	}
	return &c
}

func condition(kind, status, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason}
}

// What a claim waits for contradicts nothing that its condition says.
func TestAClaimThatNamesItsServerIsToldWhatThatOneWaitsFor(t *testing.T) {
	reserved, frozen := aServer("a", "web"), aServer("a", "web")
	frozen.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionWithheld, "True", v1alpha1.ReasonFrozen)}
	kept, parked := aServer("a", "theirs"), aServer("a", "")
	kept.Spec.ReclaimPolicy, kept.Annotations[v1alpha1.ReleasedClaimAnnotation] = v1alpha1.ReclaimPolicyRetain, "uid-theirs"
	parked.Status.State = v1alpha1.StateParked
	gang := func(c *v1alpha1.ServerClaim) {
		c.Annotations = map[string]string{v1alpha1.PlacementAnnotation: "gang: {name: db, size: 2}"}
	}
	where := func(c *v1alpha1.ServerClaim) {
		c.Annotations = map[string]string{v1alpha1.PlacementAnnotation: "where: server.gpus > 0"}
	}
	tainted := aServer("a", "theirs")
	tainted.Spec.Taints = []v1alpha1.Taint{{Key: "broken", Effect: v1alpha1.TaintEffectNoBind}}
	lost := func(c *v1alpha1.ServerClaim) {
		c.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionBound, "False", v1alpha1.ReasonBindingLost)}
	}
	restored := aServer("a", "web")
	restored.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-before"
	for name, c := range map[string]struct {
		claim  *v1alpha1.ServerClaim
		server v1alpha1.Server
		want   string
	}{
		"one that is reserved for it": {naming("a"), reserved, "nothing: the server a is reserved for it, and on its way"},
		"one that is reserved for it in a freeze": {naming("a"), frozen,
			"the server a, which is reserved for it: that is held back by a freeze, until those who run the fleet lift it or it runs out (Frozen)"},
		"one that keeps the data of a claim that has ended": {naming("a"), kept, "a: the claim that held it has ended, and its data is kept (reclaimPolicy " +
			"Retain) until it is given up (claimed); that passes when an operator of the fleet acts"},
		"of a gang, whose members name none": {naming("a", gang), aServer("a", ""),
			"another claim in its place, without spec.serverRef: a claim of a gang cannot name its server, and serverRef cannot be changed"},
		"of a gang, with a server that names it": {naming("a", gang), restored, "nothing: the server a is reserved for it, and on its way"},
		"of a gang, with the server that it had": {naming("a", gang, lost), aServer("a", ""), policyUnknown},
		"one that is held, and that its placement never accepts": {naming("a", where), aServer("a", "theirs"), "a change of the claim, or other servers; the nearest is " +
			"a: the claim's placement asks where server.gpus > 0 (placement), and 1 more in its way"},
		"one that is held and has a taint": {naming("a"), tainted, "a: another claim has it (claimed), and 1 more in its way"},
		"one that is parked":               {naming("a"), parked, "a: its state is Parked and not Available (not-available); that passes when an operator of the fleet acts"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := explain(t.Context(), aCluster(t, []client.Object{c.claim, &c.server}...), "team", "web", false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, e.WaitsFor); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestServersThatAClaimGetsNoneOfAreNotToBeHad(t *testing.T) {
	for name, c := range map[string]struct {
		members  int
		waitsFor string
		servers  string
	}{
		"a gang that is complete":             {2, "its turn: it would get a now", "4 of 4 match, 4 could be had now"},
		"a gang of which a member is missing": {1, "its gang: 1 of its 2 members exist; none of them gets a server until all do", "4 of 4 match, 4 would do but for what it waits for"},
		"a gang that has a member too many": {3, "its gang: 3 claims say that they are members, and its size is 2; none of them gets a server until they agree",
			"4 of 4 match, 4 would do but for what it waits for"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{inForce(t)}
			for _, server := range []string{"a", "b", "c", "d"} {
				s := aServer(server, "")
				objects = append(objects, &s)
			}
			for i := range c.members {
				member := aMember(fmt.Sprintf("db-%d", i), func(c *v1alpha1.ServerClaim) { c.Spec.Image = "os" })
				objects = append(objects, &member)
			}
			e, err := explain(t.Context(), aCluster(t, objects...), "team", "db-0", false)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			term := &terminal.Terminal{Out: &out, Err: &bytes.Buffer{}, Now: time.Unix(0, 0)}
			(&page{Terminal: term}).explained(e)
			said := regexp.MustCompile(`(?m)^Servers: +(.*)$`).FindStringSubmatch(out.String())
			if diff := cmp.Diff([]string{c.waitsFor, c.servers}, []string{e.WaitsFor, said[1]}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
