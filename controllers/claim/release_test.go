// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAClaimIsKeptAsItIsAppliedAgain(t *testing.T) {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-c", ResourceVersion: "7",
		Finalizers: []string{"x"}, Labels: map[string]string{"team": "shop", v1alpha1.MaintenanceNeededLabel: "true"},
		Annotations: map[string]string{v1alpha1.MinimumTermAnnotation: "Purge", "machine.sapcloud.io/pool": "a",
			v1alpha1.OperationAnnotation: "power-cycle-server", v1alpha1.MaintenanceReasonAnnotation: "firmware",
			"kubectl.kubernetes.io/last-applied-configuration": "{}"}}}
	c.Spec.Power, c.Spec.Image = v1alpha1.PowerOn, "os:1"
	c.Spec.IgnitionSecretRef = &corev1.LocalObjectReference{Name: "web"}
	var again v1alpha1.ServerClaim
	if err := json.Unmarshal([]byte(restorable(c, "r1")), &again); err != nil {
		t.Fatal(err)
	}
	if again.Kind != "ServerClaim" || again.Namespace != "shop" || again.Name != "web" || again.Labels["team"] != "shop" {
		t.Errorf("it is %s %s/%s with labels %v", again.Kind, again.Namespace, again.Name, again.Labels)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.MinimumTermAnnotation: "Purge", "machine.sapcloud.io/pool": "a"}, again.Annotations); diff != "" {
		t.Errorf("its annotations (-want +got)\n%s", diff)
	}
	if len(again.Labels) != 1 {
		t.Errorf("it keeps labels that are not its user's: %v", again.Labels)
	}
	if again.UID != "" || again.ResourceVersion != "" || len(again.Finalizers) > 0 {
		t.Errorf("it keeps what the API server writes: %+v", again.ObjectMeta)
	}
	if s := again.Spec; s.Image != "os:1" || s.Power != v1alpha1.PowerOn || s.ServerRef == nil || s.ServerRef.Name != "r1" ||
		s.IgnitionSecretRef == nil || s.IgnitionSecretRef.Name != "web" {
		t.Errorf("its spec is %+v", again.Spec)
	}
}

func TestAnAnnotationThatIsTooLongIsLeftOutAndNamed(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, want map[string]string
	}{
		"the longest": {map[string]string{"short": "s", "long": strings.Repeat("l", maxRestorable)}, map[string]string{"short": "s", v1alpha1.LeftOutAnnotation: "long"}},
		"as many as are too long together": {map[string]string{"a": strings.Repeat("a", maxRestorable), "b": strings.Repeat("b", maxRestorable+1), "c": "c"},
			map[string]string{"c": "c", v1alpha1.LeftOutAnnotation: "a,b"}},
		"none where all fit": {map[string]string{"a": strings.Repeat("a", maxRestorable/2)}, map[string]string{"a": strings.Repeat("a", maxRestorable/2)}},
	} {
		t.Run(name, func(t *testing.T) {
			kept := restorable(&v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: c.annotations}}, "r1")
			var again v1alpha1.ServerClaim
			if err := json.Unmarshal([]byte(kept), &again); err != nil || len(kept) > maxRestorable {
				t.Fatal(len(kept), err)
			}
			if diff := cmp.Diff(c.want, again.Annotations); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
