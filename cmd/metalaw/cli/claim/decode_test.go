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
			[]string{`f:1: error: unknown field "spec.imgae"`}},
		"a field of another type": {head + "metadata: {name: a}\nspec:\n  power: \"On\"\n  image: 1877\n",
			[]string{"f:1: error: spec.image is a number and has to be a string: write it in quotes"}},
		"a word that kubectl takes for a boolean": {head + "metadata: {name: a}\nspec:\n  power: On\n",
			[]string{"f:1: error: spec.power is a boolean and has to be a string: write it in quotes; kubectl takes a bare On, Off, Yes or No for a boolean"}},
		"a list for a mapping": {head + "metadata: {name: a}\nspec: []\n", []string{"f:1: error: spec is a list and has to be a mapping"}},
		"a placement as a mapping": {head + "metadata:\n  annotations:\n    team: web\n    policy.metalaw.dev/placement:\n      spread: {key: rack}\n",
			[]string{"f:1: error: metadata.annotations is a mapping and has to be a string: write it as text, with a | behind the key"}},
		"a number as an annotation": {head + "metadata:\n  annotations:\n    team: web\n    priority: 7\n",
			[]string{"f:1: error: metadata.annotations is a number and has to be a string: write it in quotes"}},
		"a field that is there twice": {"# first\n---\n" + head + "metadata: {name: a}\nspec:\n  power: \"On\"\n  power: \"Off\"\n",
			[]string{`f: error: yaml: unmarshal errors: line 8: key "power" already set in map`}},
		"a field that is there twice, and another mistake": {head + "metadata: {name: a, name: b}\nspec:\n  imgae: os\n",
			[]string{`f: error: yaml: unmarshal errors: line 3: key "name" already set in map`, `f:1: error: unknown field "spec.imgae"`}},
		"a field deep in a list": {head + "metadata: {name: a}\nspec:\n  tolerations:\n  - {key: a}\n  - {kye: b}\n",
			[]string{`f:1: error: unknown field "spec.tolerations[1].kye"`}},
		"a selector without meaning": {head + "metadata: {name: a}\nspec:\n  serverSelector:\n    matchExpressions:\n    - {key: a, operator: Is}\n",
			[]string{`f:1: error: spec.serverSelector: `}},
		"a placement": {head + "metadata:\n  annotations:\n    policy.metalaw.dev/placement: |\n      spread: {key: rack, claims: {matchLabels: {a: b}}}\n" +
			"      where: server.memoryGB > 2\n", []string{`f:1: placement:2:8: error: where: there is no fact "server.memoryGB"`}},
		"an old version": {"apiVersion: metal.ironcore.dev/v1\nkind: ServerClaim\n",
			[]string{"f:1: error: it is no ServerClaim of metal.ironcore.dev/v1alpha1"}},
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
	want := []found{{"a", 3}, {"b", 9}, {"c", 13}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(found{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Secret", "ConfigMap"}, docs.others); diff != "" {
		t.Error(diff)
	}
	if _, err := decode("f", []byte("a: 1\nb: c: d\n")); err == nil || err.Error() != "f: error: yaml: line 2: mapping values are not allowed in this context" {
		t.Error(err)
	}
}

// FuzzDecode feeds what users may write: whatever it is, it is read or refused, and each claim has a place.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(head + "metadata: {name: a}\n---\n" + head + "spec: {imgae: os}\n"))
	f.Add([]byte("kind: List\nitems: [{kind: ServerClaim}, 1, null]\n...\n--- [a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		docs, _ := decode("f", text)
		for _, d := range docs.all {
			if d.claim == nil || d.line < 1 || d.line > strings.Count(string(text), "\n")+1 {
				t.Errorf("%+v", d)
			}
		}
	})
}
