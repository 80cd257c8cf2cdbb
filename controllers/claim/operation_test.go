// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAnOperationWaitsWhileItsClaimIsAdopted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		uid  string
		want operated
	}{
		"before its UID is recorded":          {"", 0},
		"while the UID before is recorded":    {"uid-before", 0},
		"and is handed on once it is its own": {"uid-c", operationForwarded},
	} {
		t.Run(name, func(t *testing.T) {
			f := bound()
			f.claim.Annotations = map[string]string{v1alpha1.OperationAnnotation: "hard-restart-server", v1alpha1.OperationIDAnnotation: "1"}
			f.server.Annotations[v1alpha1.ClaimUIDAnnotation] = c.uid
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.server).Build()
			v := &scope{Subject: &Subject{Client: api, Live: api}, facts: f, standing: judge(f)}
			if p := v.forward(t.Context()); p.Err != nil || v.operated != c.want {
				t.Errorf("operated %d, want %d; %+v", v.operated, c.want, p)
			}
		})
	}
}
