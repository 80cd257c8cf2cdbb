// SPDX-License-Identifier: Apache-2.0

package said

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestWhenAnInventoryIsWritten(t *testing.T) {
	const cordon = `{"unclaimable":true}`
	wiring := v1alpha1.Taint{Key: "example.com/wiring", Effect: v1alpha1.TaintEffectNoBind}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	rules := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1alpha1.ServerReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: "wiring"},
		Spec: v1alpha1.ServerReadinessRuleSpec{Taint: wiring}}).Build()
	inventory := func(text string) *policyv1alpha1.ServerInventory {
		i := &policyv1alpha1.ServerInventory{}
		if text != "" {
			i.Annotations = map[string]string{v1alpha1.KeptAnnotation: text}
		}
		return i
	}
	for name, c := range map[string]struct {
		change    func(*v1alpha1.Server)
		inventory *policyv1alpha1.ServerInventory
		due       bool
		want      string
	}{
		"nothing was said, and there is no inventory": {func(*v1alpha1.Server) {}, nil, false, ""},
		"nothing was said, and nothing is kept":       {func(*v1alpha1.Server) {}, inventory(""), false, ""},
		"a cordon is new":                             {func(s *v1alpha1.Server) { s.Spec.Unclaimable = true }, inventory(""), true, cordon},
		"a cordon is kept":                            {func(s *v1alpha1.Server) { s.Spec.Unclaimable = true }, inventory(cordon), false, ""},
		"a cordon was lifted":                         {func(*v1alpha1.Server) {}, inventory(cordon), true, ""},
		"the taint of a rule is not what people said": {func(s *v1alpha1.Server) { s.Spec.Taints = []v1alpha1.Taint{wiring} }, nil, false, ""},
		"a new Server does not speak yet":             {func(s *v1alpha1.Server) { s.Status.Lifecycle = nil }, inventory(cordon), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{Spec: v1alpha1.ServerSpec{SystemUUID: "u"}}
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 1}
			c.change(s)
			keep, err := Due(t.Context(), rules, s, c.inventory)
			if err != nil || (keep != nil) != c.due {
				t.Fatalf("due %t, want %t (%v)", keep != nil, c.due, err)
			}
			if keep == nil {
				return
			}
			now := inventory("")
			if keep(now); now.Annotations[v1alpha1.KeptAnnotation] != c.want {
				t.Errorf("got %v, want %s", now.Annotations, c.want)
			}
		})
	}
}

func TestOnlyAServerThatWasNeverLookedAtGetsBackWhatIsKept(t *testing.T) {
	inventory := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{v1alpha1.KeptAnnotation: `{"unclaimable":true}`}}}
	seen, fresh, unknown := &v1alpha1.Server{}, &v1alpha1.Server{}, &v1alpha1.Server{}
	seen.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 1}
	Return(seen, inventory)
	Return(fresh, inventory)
	Return(unknown, nil)
	if seen.Spec.Unclaimable || !fresh.Spec.Unclaimable || unknown.Spec.Unclaimable {
		t.Errorf("cordoned: seen %t, fresh %t, unknown %t", seen.Spec.Unclaimable, fresh.Spec.Unclaimable, unknown.Spec.Unclaimable)
	}
}
