// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/policy/source"
)

func TestWhatIsNotThereIsSaidAsSuch(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "metalaw-system"}}).Build()
	_, unknown := findHead(t.Context(), c, "nons", "fleet-1.0.0")
	_, empty := findHead(t.Context(), c, "metalaw-system", "fleet-1.0.0")
	_, revision := drawn(t.Context(), c, &source.Flags{}, "nope", strings.NewReader(""))
	for name, got := range map[string]struct {
		err  error
		want string
	}{
		"a namespace":       {unknown, "there is no namespace nons; name that of the manager with -n"},
		"a bundle":          {empty, "there is no bundle fleet-1.0.0 in namespace metalaw-system; there are: none"},
		"a revision, drawn": {revision, "there is no PolicyRevision nope; `metalaw policy history` lists those that there are"},
	} {
		if got.err == nil || got.err.Error() != got.want {
			t.Errorf("%s: got %v, want %s", name, got.err, got.want)
		}
	}
}
