// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/migrate/release"
)

func releaseOf(t *testing.T, version string) release.Release {
	t.Helper()
	r, err := release.Parse(version)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bmcWith is a BMC with an operation annotation, and behind a Server of it.
func bmcWith(operation string) *v1alpha1.BMC {
	return &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b1", Annotations: map[string]string{v1alpha1.OperationAnnotation: operation}}}
}

func behind(s *v1alpha1.Server) { s.Spec.BMCRef = &corev1.LocalObjectReference{Name: "b1"} }

func heldBy(s *v1alpha1.Server) {
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.HeldByBMCAnnotation, "b1")
}

func dirtyInventory(server string) client.Object {
	return inventory(server, policyv1alpha1.Custody{Marks: []string{"Dirty"}})
}

func TestMetalOperatorMayNotHaveAFleetWithDataThatItDoesNotKnowOf(t *testing.T) {
	const remedy = "have it wiped, or run this with --write, which annotates it with metal.ironcore.dev/operation=ignore"
	word := []word{{"server", "a", "ignore"}}
	for name, c := range map[string]struct {
		servers []v1alpha1.Server
		others  []client.Object
		want    verdict
	}{
		"clean, held and ignored ones": {[]v1alpha1.Server{left("a", "Available", "Off", ours()), left("b", "Reserved", "On", holds("web"), ours("Dirty")),
			left("c", "Error", "Off", ours("Dirty"), ignored("ignore"))},
			[]client.Object{claimFor("web", "b", "Bound"), dirtyInventory("b"), dirtyInventory("c")}, verdict{Findings: []finding{}}},
		"a Dirty one in Error": {[]v1alpha1.Server{left("a", "Error", "Off", ours("Dirty"))}, nil,
			verdict{Findings: []finding{{"server", "a", "it is Dirty and in Error, and metal-operator may offer it; " + remedy, false}}, Words: word}},
		"one of which only the inventory knows": {[]v1alpha1.Server{left("a", "Available", "Off", ours())}, []client.Object{dirtyInventory("a")},
			verdict{Findings: []finding{{"server", "a", "it is Dirty and in Available, and metal-operator may offer it; " + remedy, false}}, Words: word}},
		"a held one whose claim is gone": {[]v1alpha1.Server{left("a", "Reserved", "On", holds("web"), ours("Dirty"))}, nil,
			verdict{Findings: []finding{{"server", "a", "it is Dirty and Reserved, and its claim does not exist, so that metal-operator may " +
				"release and offer it; " + remedy, false}}, Words: word}},
		"a Dirty one with an operation that has not ended": {[]v1alpha1.Server{left("a", "Error", "Off", ours("Dirty"), ignored("park"))}, nil,
			verdict{Findings: []finding{{"server", "a", "it is Dirty and in Error, and metal-operator may offer it; the operation park stands " +
				"where the word belongs: wait until it has ended, or remove it", false}}}},
		"one without a lifecycle": {[]v1alpha1.Server{left("a", "Available", "Off")}, nil,
			verdict{Findings: []finding{{"server", "a", "it has no status.lifecycle, so that it is not known whether it is Dirty; " +
				"let the manager take it over first", false}}}},
		"one in doubt after a restore": {[]v1alpha1.Server{left("a", "Available", "Off", ours())},
			[]client.Object{inventory("a", policyv1alpha1.Custody{Doubt: &policyv1alpha1.RestoredDoubt{}})},
			verdict{Findings: []finding{{"server", "a", "it is in doubt since the cluster's store was restored, and metal-operator " +
				"does not know that; compare it, then: metalaw restored --confirm a", false}}}},
		"one that is wiped at the moment": {[]v1alpha1.Server{left("a", "Cleanup", "On", ours("Dirty"))}, nil,
			verdict{Findings: []finding{{"server", "a", "it is in Cleanup; wait until it has left that state", false}}}},
		"what is only worth knowing": {[]v1alpha1.Server{left("a", "Observing", "On", ours()), left("b", "Parked", "Off", ours())},
			[]client.Object{dirtyInventory("c")}, verdict{Findings: []finding{}, Notes: []string{
				"machine uuid-c is Dirty and has no Server; metal-operator offers it if a BMC of its shows it",
				"server a is in Observing, a state that metal-operator v0.7 does not know"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, fleetOf(t, c.servers, c.others...).back(releaseOf(t, "v0.7"))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	t.Run("a cluster that serves no inventories", func(t *testing.T) {
		f := fleetOf(t, nil)
		f.ours = false
		if v := f.back(releaseOf(t, "main")); v.blocked() != 1 {
			t.Errorf("got %+v", v)
		}
	})
}

func TestAWordThatTheVersionDoesNotHonourIsRefused(t *testing.T) {
	wrong := func(value, version, does, word string) string {
		return "it is left alone by metal.ironcore.dev/operation=" + value + ", which metal-operator " + version +
			" does not honour: it " + does + "; run this with --write, which puts " + word + " there"
	}
	onlyBMC := "it is left alone only by the word on its BMC b1, and metal-operator v0.7.0 looks for one on the Server; have it wiped, " +
		"or run this with --write, which annotates it with metal.ironcore.dev/operation=ignore"
	claim := claimFor("web", "a", "Bound")
	claim.Annotations = map[string]string{v1alpha1.OperationAnnotation: "ignore"}
	for name, c := range map[string]struct {
		to      string
		servers []v1alpha1.Server
		others  []client.Object
		want    []finding
		words   []word
	}{
		"the long word before v0.7": {"v0.6.2", []v1alpha1.Server{left("a", "Error", "Off", ours("Dirty"), ignored("ignore-reconciliation"))},
			nil, []finding{}, nil},
		"the long word on v0.7.0, which deletes it": {"v0.7.0",
			[]v1alpha1.Server{left("a", "Error", "Off", ours("Dirty"), ignored("ignore-reconciliation"))}, nil,
			[]finding{{"server", "a", wrong("ignore-reconciliation", "v0.7.0", "removes the word and acts on it", "ignore"), false}},
			[]word{{"server", "a", "ignore"}}},
		"the short word before v0.7": {"v0.4", []v1alpha1.Server{left("a", "Available", "Off", ours(), ignored("ignore"))}, nil,
			[]finding{{"server", "a", wrong("ignore", "v0.4", "acts on it", "ignore-reconciliation"), false}},
			[]word{{"server", "a", "ignore-reconciliation"}}},
		"a word of a user's own": {"main", []v1alpha1.Server{left("a", "Available", "Off", ours(), ignored("ignore-for-audit"))}, nil,
			[]finding{{"server", "a", wrong("ignore-for-audit", "main", "removes the word and acts on it", "ignore"), false}},
			[]word{{"server", "a", "ignore"}}},
		"a word that stands on the BMC alone": {"v0.7.0", []v1alpha1.Server{left("a", "Available", "Off", ours(), behind, heldBy)},
			[]client.Object{bmcWith("ignore-child-and-self")}, []finding{{"server", "a", onlyBMC, false}}, []word{{"server", "a", "ignore"}}},
		"a word on the BMC that the manager has not noted yet": {"v0.7.0", []v1alpha1.Server{left("a", "Available", "Off", ours(), behind)},
			[]client.Object{bmcWith("ignore-child-and-self")}, []finding{{"server", "a", onlyBMC, false}}, []word{{"server", "a", "ignore"}}},
		"a BMC's word for its children alone": {"v0.7.0", []v1alpha1.Server{left("a", "Available", "Off", ours(), behind, ignored("ignore"))},
			[]client.Object{bmcWith("ignore-child")},
			[]finding{{"bmc", "b1", wrong("ignore-child", "v0.7.0", "acts on it", "ignore"), false}}, []word{{"bmc", "b1", "ignore"}}},
		"a claim": {"v0.5.0", []v1alpha1.Server{left("a", "Reserved", "On", holds("web"), ours("Dirty"))}, []client.Object{claim},
			[]finding{{"serverclaim", "shop/web", wrong("ignore", "v0.5.0", "acts on it", "ignore-reconciliation"), false}},
			[]word{{"serverclaim", "shop/web", "ignore-reconciliation"}}},
	} {
		t.Run(name, func(t *testing.T) {
			v := fleetOf(t, c.servers, c.others...).back(releaseOf(t, c.to))
			if diff := cmp.Diff(c.want, v.Findings); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.words, v.Words); diff != "" {
				t.Errorf("words (-want +got)\n%s", diff)
			}
		})
	}
}
