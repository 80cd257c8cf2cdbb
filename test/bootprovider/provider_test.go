// SPDX-License-Identifier: Apache-2.0

package bootprovider

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	ignition "github.com/coreos/ignition/v2/config"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

const (
	uuid = "4c4c4544-0042-3510-8054-b7c04f4d4d32"
	mac  = "02:4d:4c:00:00:01"
	// json33 is Ignition JSON, and butaneText a wish wish in Butane.
	json33     = `{"ignition":{"version":"3.3.0"}}`
	butaneText = "variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n    - path: /etc/motd\n      contents:\n        inline: hello\n"
)

// objects is a server with a boot configuration and its ignition; a second configuration is there where it has a name.
type objects struct {
	server         *metalv1alpha1.Server
	config, second *metalv1alpha1.ServerBootConfiguration
	secret         *corev1.Secret
}

func bootConfiguration(namespace, name string) *metalv1alpha1.ServerBootConfiguration {
	return &metalv1alpha1.ServerBootConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: metalv1alpha1.ServerBootConfigurationSpec{
			ServerRef: corev1.LocalObjectReference{Name: "srv"}, Image: "img:1", IgnitionSecretRef: &corev1.LocalObjectReference{Name: "ign"}},
		Status: metalv1alpha1.ServerBootConfigurationStatus{
			Conditions: []metav1.Condition{{Type: "BootStateReceived", Status: metav1.ConditionTrue, Reason: "Booted"}}},
	}
}

func newObjects(change func(*objects)) (*objects, client.Client) {
	o := &objects{
		server: &metalv1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "srv"}, Spec: metalv1alpha1.ServerSpec{SystemUUID: uuid}},
		config: bootConfiguration("ns", "cfg"), second: bootConfiguration("ns", ""),
		secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ign"}, Data: map[string][]byte{"ignition": []byte(json33)}},
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
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&metalv1alpha1.ServerBootConfiguration{}).
		WithIndex(&metalv1alpha1.ServerBootConfiguration{}, indexConfigSecret, secretNamed)
	for _, object := range []client.Object{o.server, o.config, o.second, o.secret} {
		if object.GetName() != "" {
			builder.WithObjects(object)
		}
	}
	return o, builder.Build()
}

// judged lets the provider judge one boot configuration and returns it.
func judged(t *testing.T, p *Provider, key client.ObjectKey) (*metalv1alpha1.ServerBootConfiguration, error) {
	t.Helper()
	_, err := p.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	var got metalv1alpha1.ServerBootConfiguration
	if getErr := p.prepare.client.Get(t.Context(), key, &got); client.IgnoreNotFound(getErr) != nil {
		t.Fatal(getErr)
	}
	return &got, err
}

func TestABootIsPrepared(t *testing.T) {
	const ready, failed, pending = "Ready", "Error", "Pending"
	failedImage := metav1.Condition{Type: "ImageValidation", Status: metav1.ConditionFalse, Reason: "ValidationFailed"}
	for name, c := range map[string]struct {
		change func(*objects)
		want   metalv1alpha1.ServerBootConfigurationState
		image  bool
		fails  bool
	}{
		"with everything there, and no interface known": {nil, ready, false, false},
		"without an ignition asked for":                 {func(o *objects) { o.config.Spec.IgnitionSecretRef, o.secret.Name = nil, "" }, ready, false, false},
		"from Pending":                                  {func(o *objects) { o.config.Status.State = pending }, ready, false, false},
		"not before the server exists":                  {func(o *objects) { o.server.Name = "another" }, "", false, true},
		"not without an image, which a condition says":  {func(o *objects) { o.config.Spec.Image = "" }, failed, true, false},
		"not without its Secret":                        {func(o *objects) { o.secret.Name = "another" }, failed, false, false},
		"not with a Secret that has no such key":        {func(o *objects) { o.secret.Data = nil }, failed, false, false},
		"with a text that is no Butane, which shows only when it is fetched": {func(o *objects) {
			o.secret.Data["format"] = []byte("fcos")
		}, ready, false, false},
		"from Error, once its Secret is there": {func(o *objects) { o.config.Status.State = failed }, ready, false, false},
		"from Error, once its image is mended": {func(o *objects) {
			o.config.Status.State, o.config.Status.Conditions = failed, append(o.config.Status.Conditions, failedImage)
		}, ready, false, false},
		"no longer, once its Secret is gone": {func(o *objects) { o.config.Status.State, o.secret.Name = ready, "another" }, failed, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, c8 := newObjects(c.change)
			got, err := judged(t, New(c8, 0), client.ObjectKeyFromObject(o.config))
			if (err != nil) != c.fails {
				t.Fatalf("error %v", err)
			}
			if got.Status.State != c.want {
				t.Errorf("state %q, want %q", got.Status.State, c.want)
			}
			if meta.FindStatusCondition(got.Status.Conditions, "BootStateReceived") == nil {
				t.Error("a condition of somebody else was lost")
			}
			if says := meta.IsStatusConditionFalse(got.Status.Conditions, "ImageValidation"); says != c.image {
				t.Errorf("a condition says that the image failed: %t, want %t", says, c.image)
			}
		})
	}
}

// named lets the server name a boot configuration.
func named(name string) *metalv1alpha1.ObjectReference {
	return &metalv1alpha1.ObjectReference{Namespace: "ns", Name: name}
}

func TestAMachineIsAnswered(t *testing.T) {
	const script, config = "/ipxe/" + uuid, "/ignition/" + uuid
	format := func(text, format string) func(*objects) {
		return func(o *objects) {
			o.secret.Data = map[string][]byte{"ignition": []byte(text), "format": []byte(format)}
		}
	}
	two := func(ref, maintenance *metalv1alpha1.ObjectReference) func(*objects) {
		return func(o *objects) {
			o.second.Name, o.second.Spec.Image = "second", "other:2"
			o.server.Spec.BootConfigurationRef, o.server.Spec.MaintenanceBootConfigurationRef = ref, maintenance
		}
	}
	known := func(o *objects) {
		o.server.Status.NetworkInterfaces = []metalv1alpha1.NetworkInterface{{MACAddress: mac}}
	}
	for name, c := range map[string]struct {
		change func(*objects)
		path   string
		status int
		body   string
	}{
		"with a script, whatever the server names":  {nil, script, 200, "imageName=img&layerDigest=kernel&version=1"},
		"with a script that names its ignition":     {nil, script, 200, " ignition.config.url=${service}/ignition/${uuid} "},
		"with no script in upper case":              {nil, "/ipxe/" + strings.ToUpper(uuid), 404, ""},
		"with no script where it is unknown":        {nil, "/ipxe/99999999-9999-9999-9999-999999999999", 404, ""},
		"with no script where its image failed":     {func(o *objects) { o.config.Spec.Image = "" }, script, 404, ""},
		"with the second of two, which it names":    {two(named("second"), nil), script, 200, "imageName=other"},
		"with the one for maintenance":              {two(named("cfg"), named("second")), script, 200, "imageName=other"},
		"with an error where it names none of two":  {two(nil, nil), script, 500, ""},
		"with an error where it names a third":      {two(named("third"), nil), config, 500, ""},
		"with Ignition JSON as it is":               {nil, config, 200, json33},
		"with Ignition JSON in upper case":          {nil, "/ignition/" + strings.ToUpper(uuid), 200, json33},
		"with a text of another format as it is":    {format("#cloud-config", "cloud-init"), config, 200, "#cloud-config"},
		"with Butane, translated":                   {format(butaneText, " fcos\n"), config, 200, `"source":"data:,hello"`},
		"with Butane without a format as it is":     {format(butaneText, ""), config, 200, "variant: fcos"},
		"with an error for JSON of the format fcos": {format(json33, "fcos"), config, 500, ""},
		"with no ignition where its Secret is gone": {func(o *objects) { o.secret.Name = "another" }, config, 404, ""},
		"by its MAC": {known, "/httpboot", 200, `"SystemUUID":"` + uuid + `"`},
		"with the default UKI where no interface is known": {nil, "/httpboot", 200, `/default-uki"}`},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, err := ask(t, c.change, c.path)
			if err != nil || status != c.status || !strings.Contains(body, c.body) {
				t.Errorf("got %d %s (%v), want %d %s", status, body, err, c.status, c.body)
			}
		})
	}
}

func TestAMachineWithoutSecretLosesItsConnection(t *testing.T) {
	status, body, err := ask(t, func(o *objects) { o.config.Spec.IgnitionSecretRef = nil }, "/ignition/"+uuid)
	if err == nil {
		t.Errorf("got %d %s, want a connection that ends", status, body)
	}
}

// ask lets the provider judge what there is and asks it as a machine does.
func ask(t *testing.T, change func(*objects), path string) (status int, body string, err error) {
	t.Helper()
	o, c8 := newObjects(change)
	p := New(c8, 0)
	for _, config := range []*metalv1alpha1.ServerBootConfiguration{o.config, o.second} {
		if _, err := judged(t, p, client.ObjectKeyFromObject(config)); err != nil {
			t.Fatal(err)
		}
	}
	served := httptest.NewServer(p.Handler())
	defer served.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, served.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", "10.0.0.1, "+mac)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func TestWhatIsFetchedIsSaidBesideOtherConditions(t *testing.T) {
	o, c8 := newObjects(nil)
	p := New(c8, 0)
	if _, err := judged(t, p, client.ObjectKeyFromObject(o.config)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/ipxe/", "/ignition/"} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path+uuid, http.NoBody)
		p.Handler().ServeHTTP(httptest.NewRecorder(), request)
	}
	got, err := judged(t, p, client.ObjectKeyFromObject(o.config))
	if err != nil || got.Status.State != metalv1alpha1.ServerBootConfigurationStateReady {
		t.Errorf("state %s (%v)", got.Status.State, err)
	}
	for _, kind := range []string{"BootStateReceived", "IPXEScriptFetched", "IgnitionDataFetched"} {
		if !meta.IsStatusConditionTrue(got.Status.Conditions, kind) {
			t.Errorf("%s is not said", kind)
		}
	}
}

func TestADeletedBootConfigurationIsServedNoMore(t *testing.T) {
	o, c8 := newObjects(nil)
	p := New(c8, 0)
	key := client.ObjectKeyFromObject(o.config)
	if _, err := judged(t, p, key); err != nil {
		t.Fatal(err)
	}
	if err := c8.Delete(t.Context(), o.config); err != nil {
		t.Fatal(err)
	}
	if _, err := judged(t, p, key); err != nil {
		t.Fatal(err)
	}
	if left := p.prepare.boots.matching(func(prepared) bool { return true }); len(left) != 0 {
		t.Errorf("%d are left", len(left))
	}
}

// TestTheAgentsIgnitionPassesTheLibraries sees that what our manager writes is Ignition to Ignition, and that the agent's file is found in
// what Butane makes of it.
func TestTheAgentsIgnitionPassesTheLibraries(t *testing.T) {
	config := metalprobe.Config{RegistryURL: "https://registry:10000", ServerUUID: uuid, Token: "secret", Purpose: metalprobe.PurposeProbe, Entry: 7}
	written, err := metalprobe.BuildIgnition(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, report, err := ignition.Parse(written); err != nil || len(report.Entries) > 0 {
		t.Errorf("the manager's text: %v %s", err, report.String())
	}
	translated, err := render([]byte(`variant: fcos
version: 1.6.0
storage:
  files:
    - path: /etc/metalprobe/config.json
      mode: 0600
      contents:
        inline: '{"registryURL":"https://registry:10000","serverUUID":"`+uuid+`","token":"secret","purpose":"probe","entry":7}'
`), "fcos")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := metalprobe.ParseIgnition(translated); err != nil || got != config {
		t.Errorf("of %s the agent reads %+v (%v)", translated, got, err)
	}
}
