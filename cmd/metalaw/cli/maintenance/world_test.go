// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// aMaintenance is ops/NAME of server node-1, made ten minutes before noon, with UID u-NAME.
func aMaintenance(name string, change ...func(*v1alpha1.ServerMaintenance)) *v1alpha1.ServerMaintenance {
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, UID: types.UID("u-" + name), CreationTimestamp: ago(10 * time.Minute),
		Annotations: map[string]string{}}}
	m.Spec.ServerRef.Name = "node-1"
	for _, c := range change {
		c(m)
	}
	return m
}

func says(kind, status, reason, message string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message,
			LastTransitionTime: ago(2 * time.Minute)})
	}
}

func in(state v1alpha1.ServerMaintenanceState) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Status.State = state }
}

// waiting waits for the approval of claim shop/web; askedOf says whose holder was asked.
func waiting(m *v1alpha1.ServerMaintenance) {
	in("Pending")(m)
	says("Granted", "False", "WaitsForApproval", "claim shop/web has not approved")(m)
}

func askedOf(uid types.UID) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) {
		m.Status.Asked = &v1alpha1.MaintenanceAsked{ClaimUID: uid, At: ago(8 * time.Minute)}
	}
}

func granted(m *v1alpha1.ServerMaintenance) {
	at := ago(5 * time.Minute)
	m.Status.State, m.Status.GrantedAt = "InMaintenance", &at
	says("Granted", "True", "ServerGranted", "approved by claim shop/web")(m)
}

func booting(m *v1alpha1.ServerMaintenance) {
	m.Spec.ServerBootConfigurationTemplate = &v1alpha1.ServerBootConfigurationTemplate{Name: "flash", Spec: v1alpha1.ServerBootConfigurationSpec{
		Image: "registry.example/flash:1", IgnitionSecretRef: &corev1.LocalObjectReference{Name: "flash-ignition"}}}
	m.Spec.ServerPower, m.Spec.LocatorLED = "On", "Blinking"
}

func annotated(pairs ...string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) {
		for i := 0; i < len(pairs); i += 2 {
			m.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func labelled(pairs ...string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) {
		m.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

// node1 is a server that claim shop/web holds, unless a change says otherwise.
func node1(change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Annotations: map[string]string{v1alpha1.ClaimUIDAnnotation: "c1"}}}
	s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
	s.Status.State, s.Status.PowerState = v1alpha1.StateReserved, v1alpha1.PowerStateOn
	for _, c := range change {
		c(s)
	}
	return s
}

func unclaimed(s *v1alpha1.Server) {
	s.Spec.ServerClaimRef, s.Status.State = nil, v1alpha1.StateAvailable
	delete(s.Annotations, v1alpha1.ClaimUIDAnnotation)
}

func handedTo(name, uid string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Status.State = v1alpha1.StateMaintenance
		s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: name}
		if uid != "" {
			s.Annotations[v1alpha1.MaintenanceUIDAnnotation] = uid
		}
	}
}

func off(s *v1alpha1.Server) { s.Status.PowerState = v1alpha1.PowerStateOff }

// web is the claim shop/web, with UID c1 and labels.
func web(labels ...string) *v1alpha1.ServerClaim {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "c1", Labels: map[string]string{}, Annotations: map[string]string{}}}
	for i := 0; i < len(labels); i += 2 {
		c.Labels[labels[i]] = labels[i+1]
	}
	return c
}

// cluster is an API server with objects, on which kinds of the given names may not be read.
func cluster(t *testing.T, refused []string, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := access.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(verb, kind, where string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: kind}, "",
			errors.New(`User "tina" cannot `+verb+` resource "`+kind+`" in API group "metal.ironcore.dev"`+where))
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, given ...client.GetOption) error {
			if kind := kindOf(into); slices.Contains(refused, kind) {
				return refuse("get", kind, " at the cluster scope")
			}
			return c.Get(ctx, key, into, given...)
		},
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, given ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(given)
			if kind := strings.TrimSuffix(kindOf(into), "List"); slices.Contains(refused, kind) || options.Namespace == "" && slices.Contains(refused, "all "+kind) {
				return refuse("list", kind, " at the cluster scope")
			}
			return c.List(ctx, into, given...)
		},
	}).Build()
}

func kindOf(o any) string {
	switch o.(type) {
	case *v1alpha1.Server, *v1alpha1.ServerList:
		return "servers"
	case *v1alpha1.ServerClaim, *v1alpha1.ServerClaimList:
		return "serverclaims"
	case *v1alpha1.ServerMaintenance, *v1alpha1.ServerMaintenanceList:
		return "servermaintenances"
	case *v1alpha1.ServerBootConfiguration:
		return "serverbootconfigurations"
	default:
		return ""
	}
}

// screen is a terminal at noon whose output and notes go to one buffer.
func screen() (*terminal.Terminal, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &terminal.Terminal{Out: out, Err: out, Now: noon}, out
}
