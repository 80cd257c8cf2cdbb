// SPDX-License-Identifier: Apache-2.0

package orphaned

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestABootConfigurationIsKnownWithoutItsOwner(t *testing.T) {
	ref := &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
	claimed := &v1alpha1.Server{Spec: v1alpha1.ServerSpec{BootConfigurationRef: ref}}
	maintained := &v1alpha1.Server{Spec: v1alpha1.ServerSpec{MaintenanceBootConfigurationRef: ref}}
	other := &v1alpha1.Server{Spec: v1alpha1.ServerSpec{
		BootConfigurationRef: &v1alpha1.ObjectReference{Namespace: "shop", Name: "db"}}}
	const claim, maintenance = v1alpha1.BootPurposeClaim, v1alpha1.BootPurposeMaintenance
	controller := []metav1.OwnerReference{{UID: "uid", Controller: ptr.To(true)}}
	for name, c := range map[string]struct {
		written string
		owners  []metav1.OwnerReference
		purpose string
		servers []*v1alpha1.Server
		want    bool
	}{
		"the manager wrote it for a claim":                     {claim, nil, claim, nil, true},
		"the manager wrote it for a maintenance":               {maintenance, nil, maintenance, nil, true},
		"it was written for a maintenance, and a claim asks":   {maintenance, nil, claim, []*v1alpha1.Server{claimed}, false},
		"it has a controller":                                  {claim, controller, claim, []*v1alpha1.Server{claimed}, false},
		"it has an owner that does not control it":             {claim, []metav1.OwnerReference{{UID: "uid"}}, claim, nil, false},
		"another operator wrote it, and a server names it":     {"", nil, claim, []*v1alpha1.Server{other, claimed}, true},
		"another operator wrote it, and no server names it":    {"", nil, claim, []*v1alpha1.Server{other, nil}, false},
		"a server names it for a maintenance":                  {"", nil, maintenance, []*v1alpha1.Server{maintained}, true},
		"a server names it for a maintenance, and not a claim": {"", nil, claim, []*v1alpha1.Server{maintained}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", OwnerReferences: c.owners}}
			if c.written != "" {
				b.Annotations = map[string]string{v1alpha1.BootPurposeAnnotation: c.written}
			}
			if got := Boot(b, c.purpose, c.servers...); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
	if Boot(nil, claim) {
		t.Error("one that does not exist is ours")
	}
}
