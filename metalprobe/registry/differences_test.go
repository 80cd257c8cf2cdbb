// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// enter puts the server into another entry.
func (f *fleet) enter(entry int64) {
	f.t.Helper()
	var server metalv1alpha1.Server
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Name: "srv"}, &server); err != nil {
		f.t.Fatal(err)
	}
	server.Status.Lifecycle.Entry, server.Status.Lifecycle.Credential.Entry = entry, entry
	if err := f.client.Update(f.t.Context(), &server); err != nil {
		f.t.Fatal(err)
	}
}

func TestOtherHardwareIsNotedAndToldOnce(t *testing.T) {
	const both = `{"memory":[{"size":1073741824,"deviceLocator":"A1","serialNumber":"M1"},{"size":1073741824,"deviceLocator":"A2","serialNumber":"M2"}]}`
	const one = `{"memory":[{"size":1073741824,"deviceLocator":"A2","serialNumber":"M2"}]}`
	f := newFleet(t, nil)
	for i, step := range []struct {
		entry         int64
		version, data string
		differences   int
		previous      int64
		event         bool
	}{
		{7, "1", both, 0, 0, false},
		{8, "1", both, 0, 0, false},
		{9, "1", one, 1, 8, true},
		{9, "1", one, 1, 8, false},
		{9, "1", both, 0, 8, false}, // it came late
		{9, "1", one, 1, 9, true},
		{10, "1", one, 0, 9, false},
		{11, "2", both, 0, 9, false}, // another version reads in another way
	} {
		f.enter(step.entry)
		body := fmt.Sprintf(`{"systemUUID":%q,"agentVersion":%q,"data":%s}`, uuid, step.version, step.data)
		if got := f.do("POST", "/register", "mine", body); got.Code != http.StatusCreated {
			t.Fatalf("step %d: %d %s", i, got.Code, got.Body)
		}
		got := f.inventory(uuid)
		previous := int64(0)
		if got.Previous != nil {
			previous = got.Previous.Entry
		}
		if len(got.Differences) != step.differences || previous != step.previous {
			t.Errorf("step %d: previous of entry %d, differences %+v", i, previous, got.Differences)
		}
		if event := f.heard(); strings.Contains(event, "HardwareChanged") != step.event || step.event && !strings.Contains(event, "removed DIMM A1") {
			t.Errorf("step %d: event %q", i, event)
		}
	}
}

func TestALargeReportIsStoredSmall(t *testing.T) {
	device := `{"address":"0000:00:01.0","vendor":"` + strings.Repeat("v", 100) + `","vendorID":"8086","product":"p","productID":"1572"},`
	f := newFleet(t, nil)
	body := report(uuid, `{"cpu":[{"id":0}],"pciDevices":[`+strings.TrimSuffix(strings.Repeat(device, 1000), ",")+`]}`)
	for range 2 {
		if got := f.do("POST", "/register", "mine", body); got.Code != http.StatusCreated {
			t.Fatalf("got %d %s", got.Code, got.Body)
		}
	}
	got := f.inventory(uuid).Report.Data
	if len(got.PCIDevices) != 0 || len(got.CPU) != 1 || len(got.Problems) != 1 || got.Problems[0].Source != "registry" {
		t.Errorf("%d devices, problems %+v", len(got.PCIDevices), got.Problems)
	}
}
