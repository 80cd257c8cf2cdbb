// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/macprefixes"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/bootprovider"
	"github.com/metalaw/metalaw/test/emulated"
	"github.com/metalaw/metalaw/test/guest"
)

func TestAnotherManagerFindsTheEmulatedBMCsInTheDatabase(t *testing.T) {
	fleet := emulator.New(emulator.Options{InMemory: true})
	defer fleet.Close()
	mac := fleet.Add(emulator.MachineSpec{Profile: emulator.ProfileGeneric}).BMCMAC()
	var database struct {
		Rows []struct {
			Prefix      string `json:"macPrefix"`
			Type        string
			Port        int
			Credentials []struct{ Username, Password string } `json:"defaultCredentials"`
			Console     *struct {
				Type string
				Port int
			}
		} `json:"macPrefixes"`
	}
	if err := yaml.Unmarshal([]byte(macPrefixes), &database); err != nil {
		t.Fatal(err)
	}
	row := database.Rows[0]
	if !strings.HasPrefix(strings.ReplaceAll(mac, ":", ""), row.Prefix) {
		t.Errorf("metal-operator does not find %s under %q", mac, row.Prefix)
	}
	if row.Type != "bmc" || row.Port != bmcPort || len(row.Credentials) != 1 {
		t.Errorf("metal-operator makes no BMC of %+v", row)
	}
	if row.Console == nil || row.Console.Type != "SSH" || row.Console.Port != 22 {
		t.Errorf("metal-operator ends over the console %+v", row.Console)
	}
	own, problems := macprefixes.Parse("macprefixes.yaml", []byte(macPrefixes))
	if own == nil {
		t.Fatalf("metalaw cannot read it: %v", problems)
	}
	if _, found := own.Lookup(mac); !found {
		t.Errorf("metalaw does not find %s", mac)
	}
}

func TestWarningsOfAnotherManagersDefinitions(t *testing.T) {
	for warning, want := range map[string]bool{
		`unrecognized format "ip"`:                     true,
		`unknown field "spec.versions[0].schema.typo"`: false,
		"would violate PodSecurity":                    false,
	} {
		if got := harmless(warning); got != want {
			t.Errorf("%s: harmless %t, want %t", warning, got, want)
		}
	}
}

// otherIgnition is an ignition as metal-operator writes it: Butane that starts its agent in a container, by flags.
const otherIgnition = `variant: fcos
version: 1.3.0
systemd:
  units:
    - name: metalprobe.service
      enabled: true
      contents: |
        [Service]
        ExecStart=/usr/bin/docker run --network host probe:1 --registry-url=REGISTRY --server-uuid=UUID
`

// TestTheMachinesOfAnotherManagerReport does what metal-operator does for an inspection: it writes a Server without interfaces, an
// ignition in Butane and a boot configuration, waits for Ready, switches the machine on over the network, and takes a report
// for one that has come when it has a timestamp.
func TestTheMachinesOfAnotherManagerReport(t *testing.T) {
	reported := make(chan otherReport, 10)
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := otherReport{credential: r.Header.Get("Authorization")}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		reported <- got
		w.WriteHeader(http.StatusCreated)
	}))
	defer registry.Close()
	objects := asAnotherManager(t)
	provider := bootprovider.New(objects, 0)
	boots := httptest.NewServer(provider.Handler())
	defer boots.Close()
	runs, err := emulated.NewGuest(guest.Options{ProviderURL: boots.URL, NoToken: true, Interval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	fleet := emulator.New(emulator.Options{InMemory: true, Guest: runs, Delays: emulator.Delays{Power: -1, Boot: -1}})
	m := fleet.Add(emulator.MachineSpec{Profile: emulator.ProfileGeneric})
	if err := fleet.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()

	uuid := strings.ToLower(m.Identity().UUID)
	boot := inspects(t, objects, uuid, strings.NewReplacer("REGISTRY", registry.URL, "UUID", uuid).Replace(otherIgnition))
	if _, err := provider.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(boot)}); err != nil {
		t.Fatal(err)
	}
	if err := objects.Get(t.Context(), client.ObjectKeyFromObject(boot), boot); err != nil || boot.Status.State != v1alpha1.ServerBootConfigurationStateReady {
		t.Fatalf("the boot configuration is %q (%v)", boot.Status.State, err)
	}
	m.SetOverride("Once", "Pxe")
	m.PowerBehindBack(true)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	select {
	case got := <-reported:
		if _, err := time.Parse(time.RFC3339, got.Data.Timestamp); err != nil || got.SystemUUID != uuid || got.credential != "" {
			t.Errorf("reported %+v (%v), want one of %s with a timestamp and without a credential", got, err, uuid)
		}
	case <-ctx.Done():
		t.Fatal("nothing was reported")
	}
}

// otherReport is what metal-operator reads of a report.
type otherReport struct {
	credential string
	SystemUUID string `json:"systemUUID"`
	Data       struct {
		Timestamp string `json:"timestamp"`
	} `json:"data"`
}

// asAnotherManager is an API server without objects.
func asAnotherManager(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.ServerBootConfiguration{}).Build()
}

// inspects writes what the inspection of a machine needs.
func inspects(t *testing.T, objects client.Client, uuid, ignition string) *v1alpha1.ServerBootConfiguration {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "metal-operator-system", Name: "bmc-system-0"}
	boot := &v1alpha1.ServerBootConfiguration{ObjectMeta: meta, Spec: v1alpha1.ServerBootConfigurationSpec{
		ServerRef: corev1.LocalObjectReference{Name: meta.Name}, Image: "os:1", IgnitionSecretRef: &corev1.LocalObjectReference{Name: meta.Name}}}
	for _, object := range []client.Object{
		&v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: meta.Name}, Spec: v1alpha1.ServerSpec{SystemUUID: uuid}},
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"format": []byte("fcos"), "ignition": []byte(ignition)}},
		boot,
	} {
		if err := objects.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return boot
}
