// SPDX-License-Identifier: Apache-2.0

package bootprovider

import (
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

const uuid = "4c4c4544-0042-3510-8054-b7c04f4d4d32"

// objects is a server with a boot configuration and its ignition, ready to be prepared.
type objects struct {
	server *metalv1alpha1.Server
	config *metalv1alpha1.ServerBootConfiguration
	secret *corev1.Secret
}

func newObjects(change func(*objects)) (*objects, client.Client) {
	o := &objects{
		server: &metalv1alpha1.Server{
			ObjectMeta: metav1.ObjectMeta{Name: "srv"},
			Spec:       metalv1alpha1.ServerSpec{SystemUUID: uuid, BootConfigurationRef: &metalv1alpha1.ObjectReference{Namespace: "ns", Name: "cfg"}},
			Status:     metalv1alpha1.ServerStatus{NetworkInterfaces: []metalv1alpha1.NetworkInterface{{Name: "eth0"}}},
		},
		config: &metalv1alpha1.ServerBootConfiguration{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cfg"},
			Spec: metalv1alpha1.ServerBootConfigurationSpec{
				ServerRef: corev1.LocalObjectReference{Name: "srv"}, Image: "img", IgnitionSecretRef: &corev1.LocalObjectReference{Name: "ign"}},
			Status: metalv1alpha1.ServerBootConfigurationStatus{
				Conditions: []metav1.Condition{{Type: "BootStateReceived", Status: metav1.ConditionTrue, Reason: "Booted"}}},
		},
		secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ign"}, Data: map[string][]byte{"ignition": []byte("{}")}},
	}
	if change != nil {
		change(o)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, metalv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&metalv1alpha1.ServerBootConfiguration{})
	for _, index := range Indexes() {
		builder.WithIndex(index.Object, index.Field, index.Extract)
	}
	for _, object := range []client.Object{o.server, o.config, o.secret} {
		if object.GetName() != "" {
			builder.WithObjects(object)
		}
	}
	return o, builder.Build()
}

func TestABootIsPrepared(t *testing.T) {
	const ready, failed, pending = "Ready", "Error", "Pending"
	for name, c := range map[string]struct {
		change func(*objects)
		want   metalv1alpha1.ServerBootConfigurationState
		says   string
	}{
		"with everything there":                  {nil, ready, ""},
		"without an ignition asked for":          {func(o *objects) { o.config.Spec.IgnitionSecretRef, o.secret.Name = nil, "" }, ready, ""},
		"from Pending":                           {func(o *objects) { o.config.Status.State = pending }, ready, ""},
		"not before the server exists":           {func(o *objects) { o.server.Name = "another" }, "", ""},
		"not before its interfaces are known":    {func(o *objects) { o.server.Status.NetworkInterfaces = nil }, "", ""},
		"not without an image":                   {func(o *objects) { o.config.Spec.Image = "" }, failed, "ImageMissing"},
		"not without its Secret":                 {func(o *objects) { o.secret.Name = "another" }, failed, "IgnitionMissing"},
		"not with a Secret that has no such key": {func(o *objects) { o.secret.Data = nil }, failed, "IgnitionMissing"},
		"from Error, once its Secret is there":   {func(o *objects) { o.config.Status.State = failed }, ready, ""},
		"not again once it is Ready":             {func(o *objects) { o.config.Status.State, o.config.Spec.Image = ready, "" }, ready, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, c8 := newObjects(c.change)
			key := client.ObjectKeyFromObject(o.config)
			if _, err := (&preparer{client: c8}).Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			var got metalv1alpha1.ServerBootConfiguration
			if err := c8.Get(t.Context(), key, &got); err != nil {
				t.Fatal(err)
			}
			if got.Status.State != c.want {
				t.Errorf("state %q, want %q", got.Status.State, c.want)
			}
			if meta.FindStatusCondition(got.Status.Conditions, "BootStateReceived") == nil {
				t.Error("a condition of somebody else was lost")
			}
			reasons := ""
			for _, condition := range got.Status.Conditions {
				reasons += condition.Reason + " "
			}
			if !strings.Contains(reasons, c.says) {
				t.Errorf("reasons %q, want %q", reasons, c.says)
			}
		})
	}
}

func TestABootIsServed(t *testing.T) {
	ready := func(o *objects) { o.config.Status.State = metalv1alpha1.ServerBootConfigurationStateReady }
	for name, c := range map[string]struct {
		change func(*objects)
		path   string
		status int
		body   string
	}{
		"once it is Ready":                       {ready, "/boot/" + strings.ToUpper(uuid), 200, `{"image":"img","ignition":"{}","sbc":"ns/cfg"}`},
		"without an ignition":                    {func(o *objects) { ready(o); o.config.Spec.IgnitionSecretRef = nil }, "/boot/" + uuid, 200, `{"image":"img","ignition":null,"sbc":"ns/cfg"}`},
		"not before it is Ready":                 {nil, "/boot/" + uuid, 500, ""},
		"not to a server that names none":        {func(o *objects) { ready(o); o.server.Spec.BootConfigurationRef = nil }, "/boot/" + uuid, 500, "names no boot configuration"},
		"not to a server that names another's":   {func(o *objects) { ready(o); o.config.Spec.ServerRef.Name = "another" }, "/boot/" + uuid, 500, ""},
		"not to a server that names one deleted": {func(o *objects) { ready(o); o.config.Name = "gone" }, "/boot/" + uuid, 500, ""},
		"not to an unknown server":               {ready, "/boot/99999999-9999-9999-9999-999999999999", 404, ""},
		"not without its Secret, which is gone":  {func(o *objects) { ready(o); o.secret.Name = "another" }, "/boot/" + uuid, 500, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, c8 := newObjects(c.change)
			recorder := httptest.NewRecorder()
			Handler(c8).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), "GET", c.path, nil))
			if recorder.Code != c.status || !strings.Contains(recorder.Body.String(), c.body) {
				t.Errorf("got %d %s, want %d %s", recorder.Code, recorder.Body, c.status, c.body)
			}
		})
	}
}
