// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// copies are n ConfigMaps with the content of 1.0.0, each labelled so.
func copies(n int, label string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("1.0.0@copy-%02d=%s", i, label))
	}
	return strings.Join(all, " ")
}

// actives are n of them that were activated one after the other.
func actives(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("1.0.0@copy-%02d=Active~jane_sha256:0_2026-01-01T00:00:%02dZ", i, i))
	}
	return strings.Join(all, " ")
}

func TestCopiesOfABundleHideNoLabel(t *testing.T) {
	const builtIn = "default Superseded Superseded"
	without := func(heads, name string) string {
		return strings.Join(slices.DeleteFunc(strings.Fields(heads), func(h string) bool { return strings.HasPrefix(h, "1.0.0@"+name+"=") }), " ")
	}
	for name, c := range map[string]struct {
		steps []string
		want  string
	}{
		"one that is labelled active beside many drafts is promoted": {
			[]string{copies(20, "Draft"), copies(20, "Draft") + " 1.0.0@real=Active~jane_sha256:0_2026-01-02T00:00:00Z"}, builtIn + ", 1.0.0 Active InForce"},
		"also without a record": {
			[]string{copies(20, "Draft"), copies(20, "Draft") + " 1.0.0@real=Active"}, builtIn + ", 1.0.0 Active InForce"},
		"also one of the drafts that was left out": {
			[]string{copies(20, "Draft"), strings.Replace(copies(20, "Draft"), "copy-19=Draft", "copy-19=Active", 1)}, builtIn + ", 1.0.0 Active InForce"},
		"what is active stays known while it cannot be read, so that it is no promotion when it can": {
			[]string{"1.0.0@real=Active", "1.0.0@real=Active 1.1.0=Active", "1.0.0!@real=Active 1.1.0=Active " + copies(20, "Shadow"),
				"1.0.0@real=Active 1.1.0=Active " + copies(20, "Shadow")},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Active InForce"},
		"of more that are active than are told apart, the one left out is no promotion when it comes in": {
			[]string{actives(17), actives(17) + " 1.1.0=Active", without(actives(17), "copy-05") + " 1.1.0=Active"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Active InForce"},
		"nor is it without records": {
			[]string{copies(17, "Active"), copies(17, "Active") + " 1.1.0=Active", without(copies(17, "Active"), "copy-05") + " 1.1.0=Active"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Active InForce"},
		"a later activation than those of all the others is one": {
			[]string{actives(17), actives(17) + " 1.1.0=Active", actives(17) + " 1.1.0=Active 1.0.0@real=Active~jane_sha256:0_2026-01-02T00:00:00Z"},
			builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
		"also where the one that was left out is activated anew": {
			[]string{actives(17), actives(17) + " 1.1.0=Active",
				without(actives(17), "copy-00") + " 1.1.0=Active 1.0.0@copy-00=Active~jane_sha256:0_2026-01-02T00:00:00Z"},
			builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
	} {
		t.Run(name, func(t *testing.T) {
			world := newCluster(t)
			for _, step := range c.steps {
				world.label(step)
				world.look()
			}
			if diff := cmp.Diff(c.want, world.shows()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTheMessageSaysHowManyCopiesAreNotLookedAt(t *testing.T) {
	w := newCluster(t)
	w.label("1.0.0=Active " + copies(18, "Draft"))
	w.look()
	const want = "servers adopt this revision since promotion 2; 3 more with this content are not looked at, as 16 ConfigMaps are told apart: " +
		"delete copies that are not needed"
	if got := message(w.revision("1.0.0")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
