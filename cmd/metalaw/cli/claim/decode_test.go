// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const head = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\n"

func TestWhatIsWrongInAFileHasItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing": {head + "metadata: {name: a}\nspec: {power: \"On\", image: os}\n", nil},
		"a field that there is not": {head + "metadata: {name: a}\nspec:\n  power: \"On\"\n  imgae: os\n",
			[]string{`f:6:3: error: unknown field "spec.imgae"`}},
		"a field of another type": {head + "metadata: {name: a}\nspec:\n  power: \"On\"\n  image: 1877\n",
			[]string{"f:6:3: error: spec.image is a number and has to be a string"}},
		"a word that kubectl takes for a boolean": {head + "metadata: {name: a}\nspec:\n  power: On\n",
			[]string{`f:5:10: error: spec.power is a bare On, which kubectl takes for a boolean: write "On" in quotes`}},
		"a number in text": {head + "metadata: {name: a}\nspec:\n  power: \"On\"\n  image: 1e3\n",
			[]string{`f:6:3: error: spec.image is a number and has to be a string: write "1e3" in quotes`}},
		"a list for a mapping": {head + "metadata: {name: a}\nspec: []\n", []string{"f:4:1: error: spec is a list and has to be a mapping"}},
		"a placement as a mapping": {head + "metadata:\n  annotations:\n    team: web\n    policy.metalaw.dev/placement:\n      spread: {key: rack}\n",
			[]string{"f:6:5: error: metadata.annotations[policy.metalaw.dev/placement] is a mapping and has to be a string: " +
				"write it as text, with a | behind the key (policy.metalaw.dev/placement: |)"}},
		"an annotation as a list": {head + "metadata:\n  annotations: {teams: [a]}\n",
			[]string{"f:4:17: error: metadata.annotations[teams] is a list and has to be a string: write it as text, with a | behind the key (teams: |)"}},
		"a number as an annotation": {head + "metadata:\n  annotations:\n    team: web\n    priority: 7\n",
			[]string{`f:6:5: error: metadata.annotations[priority] is a number and has to be a string: write "7" in quotes`}},
		"a label that kubectl takes for a boolean": {head + "metadata:\n  labels:\n    b: yes\n",
			[]string{`f:5:8: error: metadata.labels[b] is a bare yes, which kubectl takes for a boolean: write "yes" in quotes`}},
		"a label that is a boolean": {head + "metadata:\n  labels:\n    b: true\n",
			[]string{`f:5:5: error: metadata.labels[b] is a boolean and has to be a string: write "true" in quotes`}},
		"a label as a mapping": {head + "metadata:\n  labels:\n    b: {c: d}\n", []string{"f:5:5: error: metadata.labels[b] is a mapping and has to be a string"}},
		"a field that is there twice": {head + "metadata: {name: a}\nspec:\n  power: \"On\"\n  power: \"Off\"\n",
			[]string{`f:6:3: error: mapping key "power" already defined at line 5`}},
		"a field that is there twice, and another mistake": {head + "metadata: {name: a, name: b}\nspec:\n  imgae: os\n",
			[]string{`f:3:21: error: mapping key "name" already defined at line 3`, `f:5:3: error: unknown field "spec.imgae"`}},
		"a field deep in a list": {head + "metadata: {name: a}\nspec:\n  tolerations:\n  - {key: a}\n  - {kye: b}\n",
			[]string{`f:7:6: error: unknown field "spec.tolerations[1].kye"`}},
		"a selector without meaning": {head + "metadata: {name: a}\nspec:\n  serverSelector:\n    matchExpressions:\n    - {key: a, operator: Is}\n",
			[]string{`f:6:5: error: spec.serverSelector: `}},
		"a placement": {head + "metadata:\n  annotations:\n    policy.metalaw.dev/placement: |\n      spread: {key: rack, claims: {matchLabels: {a: b}}}\n" +
			"      where: server.memoryGB > 2\n", []string{`f:7:14: error: where: there is no fact "server.memoryGB"`}},
		"an old version": {"apiVersion: metal.ironcore.dev/v1\nkind: ServerClaim\n",
			[]string{"f:1:1: error: it is no ServerClaim of metal.ironcore.dev/v1alpha1"}},
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := decode("f", []byte(c.text))
			if err != nil || len(docs.all) != 1 {
				t.Fatal(docs, err)
			}
			got := docs.all[0].wrong
			for i := range got {
				if i < len(c.want) && strings.HasPrefix(got[i], c.want[i]) {
					got[i] = c.want[i]
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAllClaimsOfAFileAreFound(t *testing.T) {
	claim := func(name string) string { return head + "metadata: {name: " + name + "}\n" }
	docs, err := decode("f", []byte("# first\n---\n"+claim("a")+"---\nkind: Secret\n---\n"+claim("b")+
		"---\napiVersion: v1\nkind: List\nitems:\n- kind: ServerClaim\n  apiVersion: metal.ironcore.dev/v1alpha1\n  metadata: {name: c}\n- kind: ConfigMap\n"))
	if err != nil {
		t.Fatal(err)
	}
	type found struct {
		name string
		line int
	}
	var got []found
	for _, d := range docs.all {
		got = append(got, found{d.claim.Name, d.line})
	}
	want := []found{{"a", 3}, {"b", 9}, {"c", 16}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(found{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Secret", "ConfigMap"}, docs.others); diff != "" {
		t.Error(diff)
	}
	if _, err := decode("f", []byte("a: 1\nb: c: d\n")); err == nil || err.Error() != "f:2:1: error: mapping values are not allowed in this context" {
		t.Error(err)
	}
}
