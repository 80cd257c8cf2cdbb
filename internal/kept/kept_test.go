// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var (
	broken = v1alpha1.Taint{Key: "example.com/broken", Value: "psu", Effect: v1alpha1.TaintEffectNoBind}
	fan    = v1alpha1.Taint{Key: "example.com/broken", Value: "fan", Effect: v1alpha1.TaintEffectNoBind}
	wiring = v1alpha1.Taint{Key: "example.com/wiring", Effect: v1alpha1.TaintEffectNoBind}
)

func server(annotations map[string]string, change ...func(*v1alpha1.ServerSpec)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: annotations}}
	for _, c := range change {
		c(&s.Spec)
	}
	return s
}

func cordoned(s *v1alpha1.ServerSpec) { s.Unclaimable = true }

func tainted(all ...v1alpha1.Taint) func(*v1alpha1.ServerSpec) {
	return func(s *v1alpha1.ServerSpec) { s.Taints = all }
}

func TestWhatIsKeptOfAServer(t *testing.T) {
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		want   string
	}{
		"nothing was said": {server(nil), ""},
		"it was decommissioned": {server(map[string]string{v1alpha1.DecommissionAnnotation: "old"}, cordoned),
			`{"decommission":"old","unclaimable":true}`},
		"it was cordoned, with a reason": {server(map[string]string{v1alpha1.UnclaimableReasonAnnotation: "moves"}, cordoned),
			`{"unclaimable":true,"unclaimableReason":"moves"}`},
		"the reason of an uncordon is none": {server(map[string]string{v1alpha1.UnclaimableReasonAnnotation: "moved"}), ""},
		"a taint was set by hand": {server(nil, tainted(broken)),
			`{"taints":[{"key":"example.com/broken","value":"psu","effect":"NoBind"}]}`},
		"a taint of a rule comes back by itself": {server(nil, tainted(wiring)), ""},
		"the taints of a rule are left out": {server(nil, tainted(wiring, broken)),
			`{"taints":[{"key":"example.com/broken","value":"psu","effect":"NoBind"}]}`},
	} {
		if got := Of(c.server, []v1alpha1.Taint{wiring}).Text(); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestWhatANewServerOfTheMachineGetsBack(t *testing.T) {
	all := Words{Decommission: ptr.To("old"), Unclaimable: true, UnclaimableReason: "moves", Taints: []v1alpha1.Taint{broken}}
	for name, c := range map[string]struct {
		kept   string
		server *v1alpha1.Server
		want   *v1alpha1.Server
	}{
		"nothing was kept": {"", server(nil), server(nil)},
		"everything": {all.Text(), server(nil), server(map[string]string{v1alpha1.DecommissionAnnotation: "old",
			v1alpha1.UnclaimableReasonAnnotation: "moves"}, cordoned, tainted(broken))},
		"what it says itself stays": {all.Text(),
			server(map[string]string{v1alpha1.DecommissionAnnotation: "mine", v1alpha1.UnclaimableReasonAnnotation: "mine"}, cordoned,
				tainted(fan)),
			server(map[string]string{v1alpha1.DecommissionAnnotation: "mine", v1alpha1.UnclaimableReasonAnnotation: "mine"}, cordoned,
				tainted(fan))},
		"two values of one key and effect": {Words{Taints: []v1alpha1.Taint{broken, fan}}.Text(), server(nil),
			server(nil, tainted(broken, fan))},
		"text that cannot be read cordons": {"{", server(nil),
			server(map[string]string{v1alpha1.UnclaimableReasonAnnotation: unreadable}, cordoned)},
		"a word of a later version cordons": {`{"unclaimableUntil":"noon"}`, server(nil),
			server(map[string]string{v1alpha1.UnclaimableReasonAnnotation: unreadable}, cordoned)},
	} {
		t.Run(name, func(t *testing.T) {
			Read(c.kept).Return(c.server)
			if diff := cmp.Diff(c.want, c.server); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheAnnotationEndsWithTheWords(t *testing.T) {
	inventory := metav1.ObjectMeta{Annotations: map[string]string{"other": "stays"}}
	Words{Unclaimable: true}.Keep(&inventory)
	if got, want := inventory.Annotations[v1alpha1.KeptAnnotation], `{"unclaimable":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	Words{}.Keep(&inventory)
	if diff := cmp.Diff(map[string]string{"other": "stays"}, inventory.Annotations); diff != "" {
		t.Error(diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"decommission":"old","unclaimable":true,"taints":[{"key":"a"}]}`)
	f.Add("{")
	f.Fuzz(func(t *testing.T, text string) {
		w := Read(text)
		if again := Read(w.Text()); again.Text() != w.Text() {
			t.Errorf("%q is read as %s, and that as %s", text, w.Text(), again.Text())
		}
	})
}
