// SPDX-License-Identifier: Apache-2.0

package bootservice

import (
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bootserver"
	"github.com/metalaw/metalaw/internal/bootserver/images"
	"github.com/metalaw/metalaw/internal/tools/metalaw-image/oci"
	"github.com/metalaw/metalaw/metalprobe"
)

const (
	uuid     = "4c4c4544-0035-3410-8050-c6c04f314733"
	system   = "metalaw-system"
	mediaURL = "https://boot.example:8083"
)

// pushed is a registry with the image boot:v1.
func pushed(t *testing.T, boot oci.Boot) (host string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	boot.Arch = "amd64"
	image, err := oci.BootImage(boot)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/boot:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, oci.Index(map[string]v1.Image{"amd64": image})); err != nil {
		t.Fatal(err)
	}
	return host
}

var full = oci.Boot{Kernel: []byte("kernel"), Initramfs: []byte("initramfs"), UKI: append([]byte("MZ"), make([]byte, 4096)...)}

// world is a cluster with one server, whose boot configuration names an image of a registry.
type world struct {
	*Reconciler
	server *v1alpha1.Server
	boot   *v1alpha1.ServerBootConfiguration
	secret *corev1.Secret
}

func newWorld(t *testing.T, artefact oci.Boot, change func(*world)) *world {
	t.Helper()
	host := pushed(t, artefact)
	config, err := metalprobe.BuildIgnition(metalprobe.Config{RegistryURL: "https://registry:10000", ServerUUID: uuid, Token: "once", Purpose: metalprobe.PurposeProbe, Entry: 3})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		server: &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s1"}, Spec: v1alpha1.ServerSpec{SystemUUID: uuid,
			BMC:                  &v1alpha1.BMCAccess{Address: "192.0.2.7"},
			BootConfigurationRef: &v1alpha1.ObjectReference{Namespace: system, Name: "s1"}}},
		boot: &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "s1", Generation: 1,
			Annotations: map[string]string{v1alpha1.BootPurposeAnnotation: v1alpha1.BootPurposeProbe}},
			Spec: v1alpha1.ServerBootConfigurationSpec{Image: host + "/boot:v1", ServerRef: corev1.LocalObjectReference{Name: "s1"},
				IgnitionSecretRef: &corev1.LocalObjectReference{Name: "s1"}}},
		secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "s1"}, Data: map[string][]byte{"ignition": config}},
	}
	store, err := images.New(images.Options{Folder: t.TempDir(), Limit: 1 << 20, Allowed: []string{host}, Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	w.Reconciler = &Reconciler{Source: &Source{Images: store}, BootURL: "https://boot.example:8082", MediaURL: mediaURL}
	if change != nil {
		change(w)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.ServerBootConfiguration{}).WithObjects(w.server, w.boot)
	if w.secret != nil {
		builder = builder.WithObjects(w.secret)
	}
	for _, i := range indexes() {
		builder = builder.WithIndex(i.object, i.field, i.values)
	}
	c := builder.Build()
	w.Client, w.Live = c, c
	return w
}

func (w *world) reconcile(t *testing.T) *v1alpha1.ServerBootConfiguration {
	t.Helper()
	if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.boot)}); err != nil {
		t.Fatal(err)
	}
	boot := &v1alpha1.ServerBootConfiguration{}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(w.boot), boot); err != nil {
		t.Fatal(err)
	}
	return boot
}

func TestABootConfigurationIsReadyOnceEverythingCanBeServed(t *testing.T) {
	for name, c := range map[string]struct {
		artefact oci.Boot
		change   func(*world)
		state    v1alpha1.ServerBootConfigurationState
		says     string // in the condition
		media    bool   // a URL for the BMC is published
	}{
		"an image with everything":      {full, nil, "Ready", "", true},
		"no UKI, and iPXE is served":    {oci.Boot{Kernel: full.Kernel, Initramfs: full.Initramfs}, nil, "Ready", "", false},
		"no virtual media is served":    {full, func(w *world) { w.MediaURL = "" }, "Ready", "", false},
		"a UKI alone, without its way":  {oci.Boot{UKI: full.UKI}, func(w *world) { w.MediaURL = "" }, "Error", "has no kernel and initramfs", false},
		"a kernel alone, without a way": {oci.Boot{Kernel: full.Kernel, Initramfs: full.Initramfs}, func(w *world) { w.BootURL = "" }, "Error", "has no UKI", false},
		"an image of another registry":  {full, func(w *world) { w.boot.Spec.Image = "elsewhere.example/boot:v1" }, "Error", "--allow-registries", false},
		"no image":                      {full, func(w *world) { w.boot.Spec.Image = "" }, "Error", "name a boot image", false},
		"no Secret":                     {full, func(w *world) { w.secret = nil }, "Error", "there is no Secret metalaw-system/s1", false},
		"a Secret without an ignition":  {full, func(w *world) { w.secret.Data = nil }, "Error", "has no key ignition", false},
		"a Secret that is no Butane":    {full, func(w *world) { w.secret.Data["format"] = []byte("fcos") }, "Error", "remove the key format", false},
		"a machine without a UUID":      {full, func(w *world) { w.server.Spec.SystemUUID = "" }, "Error", "has no systemUUID", false},
		"its server names another":      {full, func(w *world) { w.server.Spec.BootConfigurationRef.Name = "s1-wipe" }, "", "", false},
		"its server names none":         {full, func(w *world) { w.server.Spec.BootConfigurationRef = nil }, "", "", false},
		"the reference is of maintenance": {full, func(w *world) {
			w.server.Spec.MaintenanceBootConfigurationRef = &v1alpha1.ObjectReference{Namespace: system, Name: "m"}
		}, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.artefact, c.change)
			boot := w.reconcile(t)
			message := ""
			for _, condition := range boot.Status.Conditions {
				message += condition.Message
			}
			url := boot.Annotations[v1alpha1.MediaURLAnnotation]
			if boot.Status.State != c.state || !strings.Contains(message, c.says) || (c.says == "") != (message == "") || (url != "") != c.media {
				t.Errorf("state %q, message %q, URL %q", boot.Status.State, message, url)
			}
		})
	}
}

func TestAnErrorGoesAwayWithItsCause(t *testing.T) {
	w := newWorld(t, full, func(w *world) { w.secret = nil })
	if boot := w.reconcile(t); boot.Status.State != v1alpha1.ServerBootConfigurationStateError {
		t.Fatalf("state %s", boot.Status.State)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "s1"}, Data: map[string][]byte{"ignition": []byte("{}")}}
	if err := w.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	first := w.reconcile(t)
	if first.Status.State != v1alpha1.ServerBootConfigurationStateReady || len(first.Status.Conditions) != 0 || first.Status.ObservedGeneration != 1 {
		t.Errorf("status %+v", first.Status)
	}
	if again := w.reconcile(t); again.ResourceVersion != first.ResourceVersion {
		t.Error("a repeated look wrote something")
	}
}

func TestTheISOIsFoundWhileItsEntryIsCurrent(t *testing.T) {
	w := newWorld(t, full, nil)
	boot := w.reconcile(t)
	file := mediaNameOf(boot.Annotations[v1alpha1.MediaURLAnnotation])
	found, err := w.ByMedia(t.Context(), file)
	if err != nil || found.Name != "metalaw-system/s1" || found.BMC.String() != "192.0.2.7" || len(file) != 43 {
		t.Fatalf("%q gives %+v, %v", file, found, err)
	}
	content, err := w.ContentOf(t.Context(), found)
	if text := string(content.Files["metalprobe/config.json"]); err != nil || content.VolumeID != "METALPROBE" || !strings.Contains(text, `"token":"once"`) {
		t.Errorf("content %+v, %v", content, err)
	}
	server := w.server.DeepCopy()
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(server), server); err != nil {
		t.Fatal(err)
	}
	server.Spec.BootConfigurationRef.Name = "s1-wipe" // the next entry
	if err := w.Client.Update(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ByMedia(t.Context(), file); !errors.Is(err, bootserver.ErrUnknown) {
		t.Errorf("after its entry: %v", err)
	}
	if _, err := w.ByUUID(t.Context(), uuid, true); !errors.Is(err, bootserver.ErrUnknown) {
		t.Errorf("a script after its entry: %v", err)
	}
}

func TestAMachineIsFoundByItsUUID(t *testing.T) {
	w := newWorld(t, full, nil)
	w.reconcile(t)
	for name, c := range map[string]struct {
		uuid  string
		exact bool
		found bool
	}{
		"as the server spells it":  {uuid, true, true},
		"upper case, exactly":      {strings.ToUpper(uuid), true, false},
		"upper case, either":       {strings.ToUpper(uuid), false, true},
		"another machine":          {"00000000-0000-0000-0000-000000000001", false, false},
		"no UUID that anybody has": {"", false, false},
	} {
		if _, err := w.ByUUID(t.Context(), c.uuid, c.exact); (err == nil) != c.found || err != nil && !errors.Is(err, bootserver.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAClaimFindsItsIgnitionOnTheISO(t *testing.T) {
	for name, c := range map[string]struct {
		text   []byte
		volume string
		files  []string
		fails  bool
	}{
		"an ignition":                  {[]byte(`{"ignition":{"version":"3.4.0"}}`), "config-2", []string{"ignition.json", "openstack/latest/meta_data.json", "openstack/latest/user_data"}, false},
		"cloud-init":                   {[]byte("#cloud-config\n"), "config-2", []string{"ignition.json", "openstack/latest/meta_data.json", "openstack/latest/user_data"}, false},
		"no Secret":                    {nil, "METALPROBE", nil, false},
		"an agent without a good file": {[]byte(`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/metalprobe/config.json","contents":{"source":"data:,x"}}]}}`), "", nil, true},
	} {
		got, err := content(c.text, bootserver.Boot{UUID: uuid, Name: "tenant/claim"})
		var files []string
		for _, file := range []string{"ignition.json", "metalprobe/config.json", "openstack/latest/meta_data.json", "openstack/latest/user_data"} {
			if _, has := got.Files[file]; has {
				files = append(files, file)
			}
		}
		if diff := cmp.Diff(c.files, files); diff != "" || got.VolumeID != c.volume || (err != nil) != c.fails {
			t.Errorf("%s: volume %q, %v: %s", name, got.VolumeID, err, diff)
		}
	}
}

func TestAnIgnitionKnowsItsMachineAndItsTime(t *testing.T) {
	sign := metav1.Condition{Type: v1alpha1.ConditionBootStateReceived, Status: metav1.ConditionTrue, Reason: "Booted"}
	for name, c := range map[string]struct {
		purpose string
		mark    string
		signed  bool
		refuses bootserver.Refusal
	}{
		"a claim":                                {v1alpha1.BootPurposeClaim, "", true, bootserver.RefusalAnotherAddress},
		"a claim of another operator":            {"", "", false, bootserver.RefusalAnotherAddress},
		"a maintenance":                          {v1alpha1.BootPurposeMaintenance, "", false, bootserver.RefusalAnotherAddress},
		"an agent":                               {v1alpha1.BootPurposeWipe, "", true, ""},
		"a claim before its first sign":          {v1alpha1.BootPurposeClaim, v1alpha1.IgnitionUntilFirstSign, false, bootserver.RefusalAnotherAddress},
		"a claim after it, under UntilFirstSign": {v1alpha1.BootPurposeClaim, v1alpha1.IgnitionUntilFirstSign, true, bootserver.RefusalFirstSign},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, full, func(w *world) {
				w.server.Status.NetworkInterfaces = []v1alpha1.NetworkInterface{{Name: "eth0", MACAddress: "52:54:00:aa:bb:01", IPs: []string{"192.0.2.1"}}}
				w.boot.Annotations = map[string]string{v1alpha1.BootPurposeAnnotation: c.purpose, v1alpha1.BootIgnitionAnnotation: c.mark}
				if c.signed {
					w.boot.Status.Conditions = []metav1.Condition{sign}
				}
			})
			w.reconcile(t)
			boot, err := w.ByUUID(t.Context(), uuid, true)
			if err != nil {
				t.Fatal(err)
			}
			if got := boot.Refuses(netip.MustParseAddr("192.0.2.9"), false); got != c.refuses {
				t.Errorf("another address: %q", got)
			}
			if got := boot.Refuses(netip.MustParseAddr("192.0.2.1"), false); got != "" && got != bootserver.RefusalFirstSign {
				t.Errorf("its own address: %q", got)
			}
		})
	}
}

func TestAUserOpensTheIgnitionOfOneMachine(t *testing.T) {
	for value, want := range map[string]bootserver.Refusal{"true": "", "": bootserver.RefusalAnotherAddress} {
		w := newWorld(t, full, func(w *world) {
			w.server.Status.NetworkInterfaces = []v1alpha1.NetworkInterface{{Name: "eth0", IPs: []string{"192.0.2.1"}}}
			w.server.Annotations = map[string]string{v1alpha1.BootAnySourceAnnotation: value}
			w.boot.Annotations = map[string]string{v1alpha1.BootPurposeAnnotation: v1alpha1.BootPurposeClaim}
		})
		w.reconcile(t)
		boot, err := w.ByUUID(t.Context(), uuid, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := boot.Refuses(netip.MustParseAddr("192.0.2.9"), false); got != want {
			t.Errorf("annotation %q: %q", value, got)
		}
	}
}

func TestARefusalIsToldOnce(t *testing.T) {
	w := newWorld(t, full, nil)
	w.reconcile(t)
	boot, err := w.ByUUID(t.Context(), uuid, true)
	if err != nil {
		t.Fatal(err)
	}
	w.Refused(t.Context(), boot, bootserver.RefusalAnotherAddress)
	first := w.reconcile(t)
	w.Refused(t.Context(), boot, bootserver.RefusalAnotherAddress)
	again := w.reconcile(t)
	told := meta.FindStatusCondition(first.Status.Conditions, v1alpha1.ConditionIgnitionRefused)
	if told == nil || told.Status != metav1.ConditionTrue || told.Reason != "AnotherAddress" || again.ResourceVersion != first.ResourceVersion {
		t.Errorf("condition %+v, versions %s and %s", told, first.ResourceVersion, again.ResourceVersion)
	}
	for why, message := range refusals {
		if why == "" || len(message) > 200 {
			t.Errorf("%s: %d characters", why, len(message))
		}
	}
}

func FuzzMediaName(f *testing.F) {
	f.Add("https://boot.example:8083/media/abc.iso")
	f.Add("/media//media/.iso")
	f.Fuzz(func(t *testing.T, url string) {
		if name := mediaNameOf(url); strings.Contains(name, "/") || name != "" && !strings.HasSuffix(url, name+".iso") {
			t.Errorf("%q gives %q", url, name)
		}
	})
}
