// SPDX-License-Identifier: Apache-2.0

package emulated

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/metalprobe/guest"
	"github.com/metalaw/metalaw/redfish/emulator"
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
