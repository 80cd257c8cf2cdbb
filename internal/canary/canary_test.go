// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestAScopeThatIsNoneIsNotRead(t *testing.T) {
	const servers, percent = policyv1alpha1.CanaryServersAnnotation, policyv1alpha1.CanaryPercentAnnotation
	for name, c := range map[string]struct {
		annotations map[string]string
		want        []FaultKind
	}{
		"both":                          {map[string]string{servers: "rack=r1", percent: "50"}, nil},
		"neither":                       {nil, []FaultKind{NoScope}},
		"a selector that is none":       {map[string]string{servers: "rack in"}, []FaultKind{NoSelector}},
		"a selector of all":             {map[string]string{servers: " "}, []FaultKind{SelectsAll}},
		"a share with a sign":           {map[string]string{percent: "+5"}, []FaultKind{NoShare}},
		"a share with leading zeros":    {map[string]string{percent: "05"}, []FaultKind{NoShare}},
		"more than all":                 {map[string]string{percent: "101"}, []FaultKind{NoShare}},
		"a selector as long as may be":  {map[string]string{servers: racks(4096)}, nil},
		"a selector that is longer":     {map[string]string{servers: racks(4097), percent: "5"}, []FaultKind{TooLong}},
		"two that are wrong, both told": {map[string]string{servers: "rack in", percent: "0"}, []FaultKind{NoSelector, NoShare}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []FaultKind
			_, faults := Parse(c.annotations)
			for _, f := range faults {
				got = append(got, f.Kind)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// racks is a selector of so many characters.
func racks(length int) string {
	const begin, another, end = "rack in (", "r1,", ")"
	text := begin + strings.Repeat(another, length/len(another))
	return text[:length-len(end)-1] + "r" + end
}

func TestASelectorThatIsTooLongIsToldWithTheRemedy(t *testing.T) {
	_, faults := Parse(map[string]string{policyv1alpha1.CanaryServersAnnotation: racks(5000)})
	const want = "policy.metalaw.dev/servers: the selector has 5000 characters, and 4096 are the most; give the servers a label of their own to " +
		"select by, or write a share in policy.metalaw.dev/percent"
	if len(faults) != 1 || faults[0].Annotation()+": "+faults[0].String() != want || len(faults[0].Value) > 100 {
		t.Error(faults)
	}
}

func TestTheLongestSelectorIsWhatARevisionHolds(t *testing.T) {
	text, err := os.ReadFile("../../config/crd/bases/policy.metalaw.dev_policyrevisions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	status := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	if got := status.Properties["canary"].Properties["selector"].MaxLength; got == nil || *got != policyv1alpha1.MaxCanarySelector {
		t.Errorf("status.canary.selector holds %v characters", got)
	}
}

func TestCovers(t *testing.T) {
	rack := map[string]string{"rack": "r1"}
	const uuid = "38947555-7742-3448-3784-823347823834"
	for name, c := range map[string]struct {
		scope  Scope
		labels map[string]string
		uuid   string
		want   bool
	}{
		"a server with the label":                {Scope{Selector: "rack=r1"}, rack, uuid, true},
		"a server without it":                    {Scope{Selector: "rack=r1"}, nil, uuid, false},
		"every server":                           {Scope{Percent: 100}, nil, uuid, true},
		"a selector that cannot be read":         {Scope{Selector: "rack in"}, rack, uuid, false},
		"a share of servers without an identity": {Scope{Percent: 99}, nil, "", false},
		"both must hold":                         {Scope{Selector: "rack=r2", Percent: 100}, rack, uuid, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.scope.Matcher("fleet").Covers(c.labels, c.uuid); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAShareIsAboutAsLargeAsItSaysAndGrowsByAdding(t *testing.T) {
	small, large, swapped := Scope{Percent: 10}.Matcher("fleet"), Scope{Percent: 30}.Matcher("fleet"), 0
	n := map[string]int{}
	for i := range 10000 {
		uuid := fmt.Sprintf("%08x-7742-3448-3784-%012x", i*7919, i)
		inSmall, inLarge := small.Covers(nil, uuid), large.Covers(nil, uuid)
		if inSmall {
			n["small"]++
		}
		if inLarge {
			n["large"]++
		}
		if inSmall && !inLarge {
			t.Fatalf("%s is in 10 %% and not in 30 %%", uuid)
		}
		if large.Covers(nil, "A"+uuid[1:]) != large.Covers(nil, "a"+uuid[1:]) {
			swapped++
		}
	}
	if n["small"] < 900 || n["small"] > 1100 || n["large"] < 2800 || n["large"] > 3200 || swapped > 0 {
		t.Errorf("of 10000: %v; by spelling %d", n, swapped)
	}
}
