// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/macprefixes"
)

func TestAnEndpointWhoseBMCIsRefusedSaysSo(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "bmcs"}, o.GetName(), errors.New("a policy says no"))
		},
	})
	e := &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "uid-e"}}
	v := &scope{subject: &subject{Options: Options{Client: api, Reader: api}.withDefaults()}, endpoint: e}
	progress := v.act(t.Context(), answer{outcome: accepted}, "")
	v.record(decide(facts{name: "e", row: macprefixes.Row{Type: "bmc"}, found: true}),
		loop.Outcome{Effect: EffectEnsureBMC, Progress: progress})
	ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonBMCRefused || !strings.Contains(ready.Message, "a policy says no") || progress.Again == 0 {
		t.Errorf("%+v, again in %s", ready, progress.Again)
	}
}
