// SPDX-License-Identifier: Apache-2.0

package emulated

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/guest"
)

var _ guest.Writer = disk{}

func TestAMachineBootsWhatTheProviderSays(t *testing.T) {
	asked := make(chan string, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		_, _ = w.Write([]byte("#!ipxe\n# boot configuration ns/claim without ignition\nkernel http://p/image?imageName=os&version=1\n")) // the client is the test's own
	}))
	defer provider.Close()
	runs, err := NewGuest(guest.Options{ProviderURL: provider.URL})
	if err != nil {
		t.Fatal(err)
	}
	fleet := emulator.New(emulator.Options{InMemory: true, Guest: runs, Delays: emulator.Delays{Power: -1, Boot: -1}})
	m := fleet.Add(emulator.MachineSpec{Profile: emulator.ProfileOpenBMC})
	if err := fleet.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()
	m.SetOverride("Once", "Pxe")
	m.PowerBehindBack(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	select {
	case path := <-asked:
		if want := "/ipxe/" + strings.ToLower(m.Identity().UUID); path != want {
			t.Errorf("asked for %s, want %s", path, want)
		}
	case <-ctx.Done():
		t.Fatal("the provider was not asked")
	}
}

// A disk that is not in the machine keeps every byte, and the wipe says so; the others are erased beside it.
func TestAWipeErasesOnlyTheDrivesInTheMachine(t *testing.T) {
	reports, outcome := make(chan metalprobe.WipeReport, 100), metalprobe.WipeReport{}
	var server *httptest.Server
	var m *emulator.Machine
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/ipxe/"):
			_, _ = w.Write([]byte("#!ipxe\n# boot configuration ns/wipe\nkernel " + server.URL + "/image?imageName=probe&version=1 ignition.config.url=" +
				server.URL + "/ignition/" + m.Identity().UUID + "\nboot\n"))
		case strings.HasPrefix(r.URL.Path, "/ignition/"):
			ignition, err := metalprobe.BuildIgnition(metalprobe.Config{RegistryURL: server.URL, ServerUUID: m.Identity().UUID,
				Token: "secret", Purpose: metalprobe.PurposeWipe, Entry: 7})
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(ignition)
		case r.URL.Path == "/wipe":
			var report metalprobe.WipeReport
			if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
				t.Error(err)
			}
			reports <- report
			_, _ = w.Write([]byte("{}"))
		default:
			_, _ = w.Write([]byte(`{"current":true}`))
		}
	}))
	defer server.Close()
	runs, err := NewGuest(guest.Options{ProviderURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	fleet := emulator.New(emulator.Options{InMemory: true, Guest: runs, Delays: emulator.Delays{Power: -1, Boot: -1, Erase: -1}})
	m = fleet.Add(emulator.MachineSpec{Profile: emulator.ProfileOpenBMC, Drives: []emulator.DriveSpec{
		{Name: "nvme0n1", Contents: "data"},
		{Name: "nvme1n1", Contents: "data", Transport: emulator.TransportTCP},
		{Name: "sda", Contents: "data"},
		{Name: "sdb", Contents: "data", Transport: emulator.TransportSAS},
		{Name: "sdc", Contents: "data", Transport: emulator.TransportISCSI},
		{Name: "sdd", Contents: "data", Transport: emulator.TransportUSBStick},
		{Name: "sde", Contents: "data", Transport: "carrier pigeon"},
	}})
	if err := fleet.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()
	m.SetOverride("Once", "Pxe")
	m.PowerBehindBack(true)
	for outcome.State == "" || outcome.State == policyv1alpha1.WipeRunning {
		select {
		case outcome = <-reports:
		case <-time.After(20 * time.Second):
			t.Fatal("the wipe did not end")
		}
	}
	got := map[string]string{}
	for _, d := range m.Drives() {
		got[d.Name] = d.Contents()
	}
	for _, d := range outcome.Disks {
		got[d.Name] += " " + string(d.State) + " " + d.Transport
	}
	for _, d := range outcome.Skipped {
		got[d.Name] += " skipped " + d.Transport
	}
	want := map[string]string{
		"nvme0n1": " Verified nvme/pcie", "sda": " Verified sata", "sdb": " Verified sas",
		"nvme1n1": "data Failed nvme/tcp", "sdc": "data Failed iscsi", "sde": "data Failed unknown",
		"sdd": "data skipped usb",
	}
	if diff := cmp.Diff(want, got); diff != "" || outcome.State != policyv1alpha1.WipeFailed {
		t.Errorf("%s, drives (-want +got):\n%s", outcome.State, diff)
	}
}

func TestTheReportDescribesTheMachine(t *testing.T) {
	fleet := emulator.New(emulator.Options{InMemory: true})
	defer fleet.Close()
	m := fleet.Add(emulator.MachineSpec{Profile: emulator.ProfileOpenBMC, Drives: []emulator.DriveSpec{{Name: "sda", Rotational: true, SizeBytes: 42}}})
	got := describe(m)
	if got.UUID != m.Identity().UUID || got.Data.SystemInfo.SystemInformation.UUID != m.InBandUUID() || got.UUID == m.InBandUUID() {
		t.Errorf("UUIDs %s and %s", got.UUID, got.Data.SystemInfo.SystemInformation.UUID)
	}
	if len(got.Data.CPU) != 2 || len(got.Data.NetworkInterfaces) != 2 || got.Data.NetworkInterfaces[0].MACAddress != m.NICs()[0].MACAddress {
		t.Errorf("%+v", got.Data)
	}
	if info := got.Disks[0].Info(); info.Path != "/dev/sda" || info.SizeBytes != 42 || !info.Rotational {
		t.Errorf("%+v", info)
	}
}
