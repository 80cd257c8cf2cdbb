// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

func failingGet(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errDown
}

func failingList(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
	return errDown
}

// rewire makes every look-up go to another client.
func (w *world) rewire(c client.Client) {
	w.t.Helper()
	hooks, err := handlers(Options{Bundles: revisions{active: defaults(w.t)}, Client: c, Reader: c, ManagerUser: manager,
		Registry: prometheus.NewRegistry()}, func() time.Time { return w.now })
	if err != nil {
		w.t.Fatal(err)
	}
	w.hooks = hooks
}

func TestARefusalIsAStatusWithACauseForEachFinding(t *testing.T) {
	w := newWorld(t, defaults(t))
	after := claim(naming("../x"), image("a b"))
	got := w.hooks[PathValidateServerClaim].Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Name: "c", Kind: metav1.GroupVersionKind{Group: "metal.ironcore.dev", Version: "v1alpha1", Kind: "ServerClaim"},
		Object: runtime.RawExtension{Raw: raw(t, after)}}})
	const noName = "Invalid value: \"../x\": no Server has such a name: " +
		"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character " +
		"(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	want := &metav1.Status{
		Status: "Failure", Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "ServerClaim \"c\": is invalid: spec.serverRef.name: " + noName + "; " +
			"spec.image: the image contains white space; write a reference such as registry.example.com/os/linux:1.2",
		Details: &metav1.StatusDetails{Name: "c", Group: "metal.ironcore.dev", Kind: "ServerClaim", Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.serverRef.name", Message: noName},
			{Type: "image-malformed", Field: "spec.image",
				Message: "the image contains white space; write a reference such as registry.example.com/os/linux:1.2"},
		}},
	}
	if diff := cmp.Diff(want, got.Result); got.Allowed || diff != "" {
		t.Error(diff)
	}
}

func TestNormalising(t *testing.T) {
	held, alone := endpoint("e", mac), endpoint("e", mac)
	held.Finalizers = []string{v1alpha1.FinalizerEndpoint}
	alone.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
	others := func(c *v1alpha1.ServerClaim) { c.Finalizers = []string{"example.com/other"} }
	ignored := func(c *v1alpha1.ServerClaim) { c.Annotations = alone.Annotations }
	for name, c := range map[string]struct {
		path   string
		object client.Object
		want   string
	}{
		"a MAC address in upper case":    {PathMutateEndpoint, endpoint("e", "B0:7B:25:00:0A:FF"), `[{"op":"replace","path":"/spec/macAddress","value":"b0:7b:25:00:0a:ff"},{"op":"add","path":"/metadata/finalizers","value":["metal.ironcore.dev/endpoint"]}]`},
		"a MAC address with dashes":      {PathMutateEndpoint, endpoint("e", "b0-7b-25-00-0a-ff"), `[{"op":"replace","path":"/spec/macAddress","value":"b0:7b:25:00:0a:ff"},{"op":"add","path":"/metadata/finalizers","value":["metal.ironcore.dev/endpoint"]}]`},
		"a device that becomes a BMC":    {PathMutateEndpoint, endpoint("e", mac), `[{"op":"add","path":"/metadata/finalizers","value":["metal.ironcore.dev/endpoint"]}]`},
		"a device of no known prefix":    {PathMutateEndpoint, endpoint("e", "02:00:00:00:00:01"), ""},
		"an endpoint that has it":        {PathMutateEndpoint, held, ""},
		"an endpoint that is left alone": {PathMutateEndpoint, alone, ""},
		"what is no MAC address is left": {PathMutateEndpoint, endpoint("e", "nonsense"), ""},
		"a system UUID in upper case":    {PathMutateServer, server(standingFor("38947555-7742-3448-3784-82334782383A")), `[{"op":"replace","path":"/spec/systemUUID","value":"38947555-7742-3448-3784-82334782383a"}]`},
		"a system UUID as it is stored":  {PathMutateServer, server(), ""},
		"a claim":                        {PathMutateServerClaim, claim(), `[{"op":"add","path":"/metadata/finalizers","value":["metal.ironcore.dev/serverclaim"]}]`},
		"a claim with another finalizer": {PathMutateServerClaim, claim(others), `[{"op":"add","path":"/metadata/finalizers","value":["example.com/other","metal.ironcore.dev/serverclaim"]}]`},
		"a claim that has it":            {PathMutateServerClaim, claim(finalized), ""},
		"a claim that is left alone":     {PathMutateServerClaim, claim(ignored), ""},
		"a claim that names its server":  {PathMutateServerClaim, claim(naming("s")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWorld(t, defaults(t)).hooks[c.path].Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw(t, c.object)}}})
			if !r.Allowed || string(r.Patch) != c.want {
				t.Errorf("got %t %s, want %s", r.Allowed, r.Patch, c.want)
			}
			if spelled := strings.Contains(c.want, "/spec/macAddress"); spelled != (len(r.Warnings) == 1) {
				t.Errorf("it warns %q", r.Warnings) // a GitOps tool would see a difference at each sync
			}
		})
	}
}

func TestRequestsAreCountedByKindAndVerdict(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := store(t, endpoint("other", mac))
	hooks, err := handlers(Options{Bundles: revisions{active: defaults(t)}, Client: c, Reader: c, Registry: registry}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, hooks: hooks}
	w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint("e", mac))
	w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint("e", "b0:7b:25:00:0a:fe"))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetValue())
			}
			got = append(got, f.GetName()+" "+strings.Join(labels, " "))
		}
	}
	want := []string{"metalaw_admission_duration_seconds Endpoint", "metalaw_admission_requests_total Endpoint allowed", "metalaw_admission_requests_total Endpoint denied"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := review.NewMetrics(registry); err != nil {
		t.Errorf("a second manager in one process: %v", err)
	}
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	w := newWorld(t, defaults(t))
	for path, hook := range w.hooks {
		r := hook.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create,
			Object: runtime.RawExtension{Raw: []byte(`{"metadata": 1}`)}}})
		if r.Allowed || !strings.Contains(r.Result.Message, "cannot be read") {
			t.Error(path, r.Allowed, r.Result)
		}
	}
}

// No object that somebody sends may bring a handler down.
func FuzzReview(f *testing.F) {
	for _, seed := range []client.Object{server(dirty, heldBy("a", "b")), claim(naming("s1"), selecting("a", "b")), endpoint("e", mac),
		inline("b", "10.0.0.1", mac), referring("b", "e"), maintenance(enforced, bootsOn("s1")), server(handedTo("m"), byUs), &v1alpha1.BMCSecret{Data: map[string][]byte{"a": {1}}}} {
		f.Add(raw(f, seed), raw(f, seed))
		f.Add(raw(f, seed), []byte("null"))
	}
	f.Add([]byte(`{"metadata":{"annotations":[]}}`), []byte(`[]`))
	w := newWorld(f, defaults(f))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		for _, hook := range w.hooks {
			for _, sub := range []string{"", "status"} {
				hook.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Update,
					SubResource: sub, OldObject: runtime.RawExtension{Raw: before}, Object: runtime.RawExtension{Raw: after}}})
			}
		}
	})
}
