// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestABMCWhoseServerIsRefusedIsNotReady(t *testing.T) {
	inWorld(t, func(w *world) {
		refuses := true
		w.subject.Client = interceptor.NewClient(w.api, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if _, server := o.(*v1alpha1.Server); server && refuses {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "servers"}, o.GetName(), errors.New("a policy says no"))
				}
				return c.Create(ctx, o, opts...)
			},
		})
		w.loop = w.subject.reconciler()
		w.addBMC("c")
		w.devices["c"] = newDevice(uuid2)
		w.rest("c")
		w.expect("c", v1alpha1.ConditionReady, "False ServerRefused")
		w.expect("c", v1alpha1.ConditionSystemsAccepted, "False ServerRefused")
		ready := meta.FindStatusCondition(w.bmc("c").Status.Conditions, v1alpha1.ConditionReady)
		if !strings.Contains(ready.Message, "the Server c-system-0. ") || !strings.Contains(ready.Message, "a policy says no") {
			t.Error(ready.Message)
		}
		if state := w.bmc("c").Status.State; state != v1alpha1.BMCStateEnabled {
			t.Errorf("a BMC that answers is %s", state)
		}
		refuses = false
		w.pass("c", time.Minute)
		w.expect("c", v1alpha1.ConditionReady, "True Connected")
		w.expect("c", v1alpha1.ConditionSystemsAccepted, "True SystemsKnown")
	})
}
