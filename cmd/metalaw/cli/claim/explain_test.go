// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

func TestHowAServerWasChosenIsToldAsFarAsItIsKnown(t *testing.T) {
	servers := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "servers"}
	adopted, recorded, taken := aServer("a", "web"), aServer("a", "web"), aServer("a", "other")
	recorded.Annotations[v1alpha1.BindingAnnotation] = `{"revision":"fleet-1","score":12,"runnersUp":1}`
	const unknown = "not known, because the server, which keeps the record, cannot be read"
	for name, c := range map[string]struct {
		servers []client.Object
		refusal error
		page    string
		json    string
	}{
		"by a policy": {[]client.Object{&recorded}, nil, "fleet-1, with score 12; 1 other server would have done",
			`{"server":"a","recorded":true,"revision":"fleet-1","score":12,"runnersUp":1}`},
		"by nobody, as after an adoption": {[]client.Object{&adopted}, nil, "nobody recorded it; so it is after an adoption", `{"server":"a","recorded":false}`},
		"by whoever, before the server was another claim's": {[]client.Object{&taken}, nil, "not known any more, because the server does not name this claim",
			`{"server":"a","recorded":false,"lost":true}`},
		"by whoever, to a reader who may not read servers": {[]client.Object{&recorded},
			apierrors.NewForbidden(servers, "a", errors.New(`User "tina" cannot get resource "servers"`)), unknown, `{"server":"a"}`},
		"by whoever, on a server that is gone": {nil, nil, unknown, `{"server":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			claim := aMember("web", func(c *v1alpha1.ServerClaim) {
				c.Annotations, c.Spec.ServerRef = nil, &corev1.LocalObjectReference{Name: "a"}
				c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBound, Status: metav1.ConditionTrue}}
			})
			get := func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, into client.Object, given ...client.GetOption) error {
				if _, isServer := into.(*v1alpha1.Server); isServer && c.refusal != nil {
					return c.refusal
				}
				return inner.Get(ctx, key, into, given...)
			}
			reader := interceptor.NewClient(aCluster(t, append(c.servers, &claim)...), interceptor.Funcs{Get: get})
			e, err := explain(t.Context(), reader, "team", "web", false)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := (&page{Terminal: &terminal.Terminal{Out: &out, Err: &bytes.Buffer{}}, now: time.Unix(0, 0)}).explained(e); err != nil {
				t.Fatal(err)
			}
			said := regexp.MustCompile(`(?m)^Chosen by: +(.*)$`).FindStringSubmatch(out.String())
			if diff := cmp.Diff(c.page, said[1]); diff != "" {
				t.Error(diff)
			}
			text, err := json.Marshal(e.Binding)
			if diff := cmp.Diff(c.json, string(text)); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}
