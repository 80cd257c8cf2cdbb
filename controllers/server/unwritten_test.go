// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// refusingCreation is an API server that refuses each object that is made, as a quota does, while refuses says so.
func refusingCreation(api client.WithWatch, refuses *bool) client.Client {
	return interceptor.NewClient(api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if *refuses {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, o.GetName(), errors.New("exceeded quota: small"))
			}
			return c.Create(ctx, o, opts...)
		},
	})
}

func TestAServerWhoseBootIsRefusedSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		objects func() []client.Object
		what    string
	}{
		"that of a claim": {func() []client.Object { return reserved(v1alpha1.PowerOn)[:2] }, "the ServerBootConfiguration shop/web. "},
		"that of the probe": {func() []client.Object { return []client.Object{serverIn(v1alpha1.StateDiscovery)} },
			"the Secret metalaw-system/a. "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refuses := true
				w := inWorld(t, newMachine(redfish.PowerOff), append(c.objects(), inventoryOfA())...)
				w.manager.Client = refusingCreation(w.api, &refuses)
				w.manager.run(2 * time.Minute)
				s := w.server()
				for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionStalled} {
					told := meta.FindStatusCondition(s.Status.Conditions, kind)
					if told == nil || told.Reason != v1alpha1.ReasonBootConfigurationRefused || !strings.Contains(told.Message, c.what) ||
						!strings.Contains(told.Message, "exceeded quota: small") {
						t.Errorf("%s: %+v", kind, told)
					}
				}
				told := 0
				for _, reason := range w.events {
					if reason == v1alpha1.ReasonBootConfigurationRefused {
						told++
					}
				}
				if told != 1 {
					t.Errorf("%d events of it: %v", told, w.events)
				}
				refuses = false
				w.manager.run(time.Minute)
				if s := w.server(); s.Spec.BootConfigurationRef == nil || meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionStalled) {
					t.Errorf("a minute after it was lifted: boot %v, %+v", s.Spec.BootConfigurationRef, s.Status.Conditions)
				}
			})
		})
	}
}
