// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAClaimIsKeptAsItIsAppliedAgain(t *testing.T) {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-c", ResourceVersion: "7",
		Finalizers: []string{"x"}, Labels: map[string]string{"team": "shop"}}}
	c.Spec.Power, c.Spec.Image = v1alpha1.PowerOn, "os:1"
	c.Spec.IgnitionSecretRef = &corev1.LocalObjectReference{Name: "web"}
	var again v1alpha1.ServerClaim
	if err := json.Unmarshal([]byte(restorable(c, "r1")), &again); err != nil {
		t.Fatal(err)
	}
	if again.Kind != "ServerClaim" || again.Namespace != "shop" || again.Name != "web" || again.Labels["team"] != "shop" {
		t.Errorf("it is %s %s/%s with labels %v", again.Kind, again.Namespace, again.Name, again.Labels)
	}
	if again.UID != "" || again.ResourceVersion != "" || len(again.Finalizers) > 0 {
		t.Errorf("it keeps what the API server writes: %+v", again.ObjectMeta)
	}
	if s := again.Spec; s.Image != "os:1" || s.Power != v1alpha1.PowerOn || s.ServerRef == nil || s.ServerRef.Name != "r1" ||
		s.IgnitionSecretRef == nil || s.IgnitionSecretRef.Name != "web" {
		t.Errorf("its spec is %+v", again.Spec)
	}
}
