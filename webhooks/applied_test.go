// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// An operation in an applied manifest is warned of only where a hook is asked about it.
func TestAHookIsAskedAboutAnOperationOfEachKind(t *testing.T) {
	conditions := conditionsOf(t)
	for hook, o := range map[string]client.Object{
		"server.validate.metalaw.dev":         server(),
		"serverclaim.validate.metalaw.dev":    claim(),
		"bmc-acceptance.validate.metalaw.dev": &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: v1alpha1.BMCSpec{Hostname: "b"}},
	} {
		asks := o.DeepCopyObject().(client.Object)
		asks.SetAnnotations(map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationHardRestartServer})
		hooks := []string{hook}
		if got := hooksAsked(t, conditions, hooks, user, "UPDATE", o, asks); !slices.Equal(got, hooks) {
			t.Errorf("%s is not asked", hook)
		}
		if got := hooksAsked(t, conditions, hooks, user, "UPDATE", asks, asks); got != nil {
			t.Errorf("%s is asked about what stands", hook)
		}
	}
}
