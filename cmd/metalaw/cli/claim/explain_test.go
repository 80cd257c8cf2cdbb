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
		"by nobody, as after an adoption": {[]client.Object{&adopted}, nil, "not recorded, as after an adoption", `{"server":"a","recorded":false}`},
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
			term := &terminal.Terminal{Out: &out, Err: &bytes.Buffer{}, Now: time.Unix(0, 0)}
			(&page{Terminal: term}).explained(e)
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

func TestABoundClaimIsExplainedByAllThatItSays(t *testing.T) {
	at := metav1.Unix(0, 0)
	said := func(kind, status, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: at}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.ServerClaim)
		want   string
	}{
		"one that runs": {func(c *v1alpha1.ServerClaim) {
			c.Status.Conditions = append(c.Status.Conditions, said("Ready", "True", "Running", "the BMC says On"))
		}, "Ready:       yes, since 7s (Running): the BMC says On\n"},
		"one that cannot boot": {func(c *v1alpha1.ServerClaim) {
			c.Status.Conditions = append(c.Status.Conditions, said("Ready", "False", "BootError", "no such image"))
		}, "Ready:       no, since 7s (BootError): no such image\n"},
		"one for which somebody has to act": {func(c *v1alpha1.ServerClaim) {
			c.Status.Conditions = append(c.Status.Conditions, said("Ready", "False", "ServerHalted", "it is halted"), said("Stalled", "True", "ServerHalted", "it is halted"))
		}, "Ready:       no, since 7s (ServerHalted): it is halted\nStalled:     yes, since 7s (ServerHalted)\n"},
		"one that is being deleted, and left alone": {func(c *v1alpha1.ServerClaim) {
			c.DeletionTimestamp = &at
			c.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
			c.Status.Conditions = append(c.Status.Conditions, said("Stalled", "True", "Ignored", "it keeps its server"))
		}, "Stalled:     yes, since 7s (Ignored): it keeps its server\nDeleted:     its deletion was asked for 7s ago\n"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := aMember("web", func(c *v1alpha1.ServerClaim) {
				c.Annotations, c.Spec.ServerRef = nil, &corev1.LocalObjectReference{Name: "a"}
				c.Status.Conditions = []metav1.Condition{said("Bound", "True", "Bound", "bound to server a")}
				c.Status.Phase = v1alpha1.PhaseBound
			})
			c.change(&claim)
			server := aServer("a", "web")
			e, err := explain(t.Context(), aCluster(t, &claim, &server), "team", "web", false)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			term := &terminal.Terminal{Out: &out, Err: &bytes.Buffer{}, Now: time.Unix(7, 0)}
			(&page{Terminal: term}).explained(e)
			want := "Claim team/web is bound since 7s (Bound)\n\nIt says:     bound to server a\n" + c.want +
				"Server:      a\nChosen by:   not recorded, as after an adoption\n"
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
