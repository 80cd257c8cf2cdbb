// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestTheMarkDirtyOfAClaim(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.Server)
		down   bool
		want   []string
	}{
		"comes with the move, and the inventory has it before": {
			holdsWeb, false, []string{"Reserved [Dirty Managed], kept [Dirty]"}},
		"follows the move where the inventory cannot be written": {
			holdsWeb, true, []string{"Reserved [Managed], kept []"}},
		"does not come where the claim has ended": {
			func(s *v1alpha1.Server) { holdsWeb(s); released(s) }, false, []string{"Reserved [Managed], kept []"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable, c.change), reserved(v1alpha1.PowerOn)[1],
					&policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: machineUUID},
						Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: machineUUID}, Custody: &policyv1alpha1.Custody{}})
				if c.down {
					w.manager.Client = interceptor.NewClient(w.api, interceptor.Funcs{Patch: func(
						ctx context.Context, next client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
						if _, is := o.(*policyv1alpha1.ServerInventory); is {
							return errDown
						}
						return next.Patch(ctx, o, p, opts...)
					}})
				}
				var got []string
				w.refuses = func(s *v1alpha1.Server) error {
					if s.Status.State == v1alpha1.StateReserved && len(got) == 0 {
						got = append(got, fmt.Sprintf("Reserved %v, kept %v", s.Status.Lifecycle.Marks, w.custodyOfA().Marks))
					}
					return nil
				}
				w.manager.run(10 * time.Second)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("the move (-want +got)\n%s", diff)
				}
			})
		})
	}
}
