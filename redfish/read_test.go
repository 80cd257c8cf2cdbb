// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestASystemReadsAsASnapshot(t *testing.T) {
	f := newFake(t)
	f.set(systemURI, `{"Id":1,"UUID":"4C4C4544-0035-3410-8050-C6C04F314733","SerialNumber":" S1 ","Manufacturer":"Acme","Model":null,"SKU":42,
		"PowerState":"poweringon","Status":{"Health":"Critical","HealthRollup":null},"IndicatorLED":null,"LocationIndicatorActive":true,
		"BiosVersion":"2.1","MemorySummary":{"TotalSystemMemoryGiB":"1.5"},"ProcessorSummary":{"Count":"2","Model":"X"},
		"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootOrder":["A",null,"B"],
			"BootSourceOverrideTarget@Redfish.AllowableValues":["None","Pxe"]},
		"Actions":{"#ComputerSystem.Reset":{"ResetType@Redfish.AllowableValues":["On",7]}}}`)
	got, err := f.client(t).System(t.Context(), systemURI)
	if err != nil {
		t.Fatal(err)
	}
	want := SystemSnapshot{
		URI:      systemURI,
		Identity: Identity{UUID: systemUUID, SerialNumber: "S1", Manufacturer: "Acme", SKU: "42"},
		Power:    PowerPoweringOn, Health: HealthCritical, LED: LEDLit,
		BIOSVersion: "2.1", MemoryBytes: 3 << 29, CPUCount: 2, CPUModel: "X",
		Boot:      BootOverride{Enabled: "Once", Target: "Pxe", Allowed: []string{"None", "Pxe"}},
		BootOrder: []string{"A", "B"}, ResetTypes: []string{"On", "7"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(SystemSnapshot{}, "TakenAt")); diff != "" {
		t.Error(diff)
	}
	if time.Since(got.TakenAt) > time.Minute || got.TakenAt.IsZero() {
		t.Errorf("taken at %v", got.TakenAt)
	}
}

func TestAPowerStateThatIsNotNamedIsUnknownAndNotOff(t *testing.T) {
	for value, want := range map[string]PowerState{
		`"On"`: PowerOn, `"Off"`: PowerOff, `"Paused"`: PowerPaused, `"PoweringOn"`: PowerPoweringOn, `"PoweringOff"`: PowerPoweringOff,
		`null`: PowerUnknown, `""`: PowerUnknown, `"Reset"`: PowerUnknown, `0`: PowerUnknown, `{}`: PowerUnknown, `["Off"]`: PowerUnknown, `false`: PowerUnknown,
	} {
		f := newFake(t)
		f.set(systemURI, `{"Id":"1","PowerState":`+value+`}`)
		got, err := f.client(t).System(t.Context(), systemURI)
		if err != nil || got.Power != want {
			t.Errorf("%s reads %s (%v), want %s", value, got.Power, err, want)
		}
	}
}

func TestAManagerReadsAsASnapshot(t *testing.T) {
	f := newFake(t)
	got, err := f.client(t).Manager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := ManagerSnapshot{Manufacturer: "Acme", Model: "M", FirmwareVersion: "1.2", Power: PowerUnknown,
		LastResetTime: time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC), SystemURIs: []string{systemURI}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ManagerSnapshot{}, "Listed", "TakenAt")); diff != "" {
		t.Error(diff)
	}
}

func TestAnImplausibleResetTimeIsZero(t *testing.T) {
	for _, raw := range []text{"", "0000-00-00T00:00:00+00:00", "1970-01-01T00:00:10Z", "2999-01-01T00:00:00Z", "yesterday"} {
		if got := plausible(raw); !got.IsZero() {
			t.Errorf("%q reads %v", raw, got)
		}
	}
}

func TestALaterPollIsOneRequest(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	if _, err := c.Manager(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLines(t, f.seen(), "GET "+managerURI)
	if err := read(t, c); err != nil {
		t.Fatal(err)
	}
	wantLines(t, f.seen(), "GET "+systemURI)
}

func TestSystemsAreListedAnewAfterA404OrAResetOfTheBMC(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	f.set("/redfish/v1/Systems", `{"Members":[{"@odata.id":"/redfish/v1/Systems/new"}]}`)
	f.set("/redfish/v1/Systems/new", systemJSON("On"))
	f.once("GET "+systemURI, status(404))
	if err := read(t, c); !statusIs(err, 404) {
		t.Errorf("error %v", err)
	}
	got, err := c.Manager(t.Context())
	if err != nil || fmt.Sprint(got.SystemURIs) != "[/redfish/v1/Systems/new]" {
		t.Errorf("after a 404: %v, %v", got.SystemURIs, err)
	}
	f.set("/redfish/v1/Systems", `{"Members":[{"@odata.id":"`+systemURI+`"}]}`)
	f.set(managerURI, `{"Id":"1","LastResetTime":"2024-04-01T00:00:00Z"}`)
	got, err = c.Manager(t.Context())
	if err != nil || fmt.Sprint(got.SystemURIs) != "["+systemURI+"]" {
		t.Errorf("after a reset: %v, %v", got.SystemURIs, err)
	}
}

func TestNoSystemIsAnErrorAndNeverAnEmptyList(t *testing.T) {
	for name, doc := range map[string]string{
		"an empty list":       `{"Members":[]}`,
		"null members":        `{"Members":null}`,
		"no members":          `{"Id":"Systems"}`,
		"members of no kind":  `{"Members":"none"}`,
		"an empty member":     `{"Members":[{}]}`,
		"a null member":       `{"Members":[null]}`,
		"only a tray":         `{"Members":[{"@odata.id":"/redfish/v1/Systems/HGX_Baseboard_0","Actions":{"#ComputerSystem.Reset":{"target":"/x"}}}]}`,
		"nothing but unknown": `{"Members":[{"@odata.id":"/redfish/v1/Systems/x","Id":"x"}]}`,
		"a loop of pages":     `{"Members":[],"Members@odata.nextLink":"/redfish/v1/Systems"}`,
		"a null body":         `null`,
		"an unreadable one":   `{"Members":[{"@odata.id":"/redfish/v1/Systems/404"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.set("/redfish/v1/Systems", doc)
			got, err := f.client(t).Manager(t.Context())
			var response *ResponseError
			if !errors.As(err, &response) {
				t.Errorf("systems %v, error %v; want a ResponseError", got.SystemURIs, err)
			}
		})
	}
}

func TestABadMemberDoesNotHideTheGoodOnes(t *testing.T) {
	f := newFake(t)
	f.set("/redfish/v1/Systems", `{"Members":[{"@odata.id":"/redfish/v1/Systems/gone"},{"@odata.id":"/redfish/v1/Systems/sick"},
		{"@odata.id":"/redfish/v1/Systems/HGX_Baseboard_0"},{"@odata.id":"`+systemURI+`"}]}`)
	f.on("GET /redfish/v1/Systems/sick", status(500))
	got, err := f.client(t).Manager(t.Context())
	if err != nil || fmt.Sprint(got.SystemURIs) != "["+systemURI+"]" || len(got.Unreadable) != 2 {
		t.Errorf("got %v, unreadable %v, error %v", got.SystemURIs, got.Unreadable, err)
	}
	f.seen()
}

func TestPagesWithoutEndStopAtTheRequestLimit(t *testing.T) {
	f := newFake(t)
	page := 0
	f.on("GET /redfish/v1/Systems", func(w http.ResponseWriter, _ *http.Request) {
		page++
		_, _ = fmt.Fprintf(w, `{"Members":[],"Members@odata.nextLink":"/redfish/v1/Systems?page=%d"}`, page)
	})
	_, err := f.client(t, PoolOptions{RequestLimit: 20}).Manager(t.Context())
	if err == nil || !strings.Contains(err.Error(), "more than the 20 requests") {
		t.Errorf("error %v", err)
	}
	if n := len(f.seen()); n != 20 {
		t.Errorf("%d requests", n)
	}
}

const nicsURI = systemURI + "/EthernetInterfaces"

func withNICs(f *fakeBMC, members string) {
	f.set(systemURI, systemJSON("Off", `,"EthernetInterfaces":{"@odata.id":"`+nicsURI+`"}`))
	f.set(nicsURI, `{"Members":[`+members+`]}`)
}

func TestOnlyTheHostsOwnUsableInterfacesAreListed(t *testing.T) {
	f := newFake(t)
	withNICs(f, `{"@odata.id":"/n/1","Id":"1","MACAddress":"70-B5-E8-F0-52-DC","LinkStatus":"LinkUp"},
		{"@odata.id":"/n/2","Id":"2","MACAddress":"70b5e8f052dc"},
		{"@odata.id":"/n/3","Id":"3","MACAddress":"Not Available","PermanentMACAddress":"70:B5:E8:F0:52:DD"},
		{"@odata.id":"/n/4","Id":"4","MACAddress":null},
		{"@odata.id":"/n/5","Id":"5","MACAddress":"00:00:00:00:00:00"},
		{"@odata.id":"/n/6","Id":"6","MACAddress":"01:00:5e:00:00:01"},
		{"@odata.id":"/n/7","Id":"usb0","MACAddress":"02:00:00:00:00:01","Links":{"HostInterface":{"@odata.id":"/m/HostInterfaces/1"}}},
		{"@odata.id":"/n/ToManager","MACAddress":"02:00:00:00:00:02"}`)
	got, err := f.client(t).SystemDetail(t.Context(), systemURI)
	want := []NIC{{Name: "1", MACAddress: "70:b5:e8:f0:52:dc", LinkUp: true}, {Name: "3", MACAddress: "70:b5:e8:f0:52:dd"}}
	if err != nil || cmp.Diff(want, got.NICs) != "" || got.NICsIncomplete {
		t.Errorf("error %v, %s", err, cmp.Diff(want, got.NICs))
	}
}

func TestAnInterfaceThatCannotBeReadMakesTheListIncomplete(t *testing.T) {
	f := newFake(t)
	withNICs(f, `{"@odata.id":"/n/1"},{"@odata.id":"/n/2"}`)
	f.set("/n/2", `{"Id":"2","MACAddress":"70:b5:e8:f0:52:dc"}`)
	got, err := f.client(t).SystemDetail(t.Context(), systemURI)
	if err != nil || len(got.NICs) != 1 || !got.NICsIncomplete {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAnInterfaceThatFailsOnceIsReadAgain(t *testing.T) {
	f := newFake(t)
	withNICs(f, `{"@odata.id":"/n/1"},{"@odata.id":"/n/2"}`)
	f.set("/n/1", `{"Id":"1","MACAddress":"70:b5:e8:f0:52:db"}`)
	f.set("/n/2", `{"Id":"2","MACAddress":"70:b5:e8:f0:52:dc"}`)
	f.once("GET /n/1", status(http.StatusServiceUnavailable))
	got, err := f.client(t).SystemDetail(t.Context(), systemURI)
	if err != nil || len(got.NICs) != 2 || got.NICsIncomplete {
		t.Errorf("got %+v, %v", got.NICs, err)
	}
}

func TestAListOfAnotherBMCIsNotRemembered(t *testing.T) {
	f := newFake(t)
	f.set(managerURI, naming(`"UUID":"`+managerUUID+`"`))
	c := f.warm(t)
	f.set(managerURI, naming(`"UUID":"`+otherUUID+`"`))
	if got, err := c.Manager(t.Context()); err != nil || len(got.Listed) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestACollectionWithoutMembersIsNotEmpty(t *testing.T) {
	for _, doc := range []string{`{"Members":null}`, `{}`, `null`, `{"Members":[],"Members@odata.nextLink":"` + nicsURI + `"}`} {
		f := newFake(t)
		withNICs(f, "")
		f.set(nicsURI, doc)
		_, err := f.client(t).SystemDetail(t.Context(), systemURI)
		var response *ResponseError
		if !errors.As(err, &response) {
			t.Errorf("%s: %v", doc, err)
		}
		if n := len(f.seen("GET")); n != 3 {
			t.Errorf("%s: %d reads, want 3", doc, n)
		}
	}
}

func TestASystemWithoutInterfacesHasNone(t *testing.T) {
	f := newFake(t)
	f.set(systemURI, systemJSON("Off", `,"EthernetInterfaces":{"@odata.id":"/nowhere"}`))
	if got, err := f.client(t).SystemDetail(t.Context(), systemURI); err != nil || len(got.NICs) != 0 {
		t.Errorf("a dangling link: %+v, %v", got.NICs, err)
	}
	f.set(systemURI, systemJSON("Off"))
	if got, err := f.client(t).SystemDetail(t.Context(), systemURI); err != nil || len(got.NICs) != 0 {
		t.Errorf("no link: %+v, %v", got.NICs, err)
	}
}

const expandOffer = `,"ProtocolFeaturesSupported":{"ExpandQuery":{"NoLinks":true,"Levels":true}}`

func TestExpandSavesTheReadsOfMembers(t *testing.T) {
	f := newFake(t)
	f.set("/redfish/v1/", strings.TrimSuffix(f.docs["/redfish/v1/"], "}")+expandOffer+"}")
	withNICs(f, `{"@odata.id":"/n/1","Id":"1","MACAddress":"70:b5:e8:f0:52:dc"}`)
	f.set("/redfish/v1/Systems", `{"Members":[`+f.docs[systemURI]+`]}`)
	f.set("/redfish/v1/Managers", `{"Members":[`+f.docs[managerURI]+`]}`)
	c := f.client(t)
	if _, err := c.Manager(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := c.SystemDetail(t.Context(), systemURI); err != nil || len(got.NICs) != 1 {
		t.Fatal(got, err)
	}
	q := "?$expand=.($levels=1)"
	got := f.seen()
	got[1] = got[1][:len("POST "+sessions)]
	wantLines(t, got, "GET /redfish/v1/", "POST "+sessions, "GET /redfish/v1/Systems"+q, "GET /redfish/v1/Managers"+q, "GET "+nicsURI+q)
}

func TestASystemThatWasJustListedIsNotReadAgain(t *testing.T) {
	for name, c := range map[string]struct {
		doc   string
		then  func(c *client)
		reads int
	}{
		"one that is listed whole":           {doc: "", reads: 0},
		"one that is listed in part":         {doc: `{"@odata.id":"` + systemURI + `","UUID":"` + systemUUID + `","PowerState":"Off"}`, reads: 1},
		"one that was read of the list once": {then: func(c *client) { _, _ = c.SystemDetail(t.Context(), systemURI) }, reads: 1},
		"one that was written to since": {then: func(c *client) {
			_ = c.SetLED(t.Context(), systemURI, self, LEDLit)
		}, reads: 1},
		"one that was listed a while ago": {then: func(c *client) {
			c.learn(func(m *memory) {
				l := m.listed[systemURI]
				l.asked = l.asked.Add(-2 * listedFor)
				m.listed[systemURI] = l
			})
		}, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.set("/redfish/v1/", strings.TrimSuffix(f.docs["/redfish/v1/"], "}")+expandOffer+"}")
			withNICs(f, `{"@odata.id":"/n/1","Id":"1","MACAddress":"70:b5:e8:f0:52:dc"}`)
			f.set("/redfish/v1/Systems", `{"Members":[`+stdcmp.Or(c.doc, f.docs[systemURI])+`]}`)
			bmc := f.client(t)
			before := time.Now()
			if _, err := bmc.Manager(t.Context()); err != nil {
				t.Fatal(err)
			}
			after := time.Now()
			if c.then != nil {
				c.then(bmc.(*client))
			}
			f.seen()
			got, err := bmc.SystemDetail(t.Context(), systemURI)
			if err != nil || got.Power != PowerOff || got.Identity.UUID != systemUUID || len(got.NICs) != 1 {
				t.Fatal(got, err)
			}
			if listed := !got.TakenAt.Before(before) && !got.TakenAt.After(after); listed != (c.reads == 0) {
				t.Errorf("taken at %s, listed between %s and %s", got.TakenAt, before, after)
			}
			reads := 0
			for _, line := range f.seen() {
				if line == "GET "+systemURI {
					reads++
				}
			}
			if reads != c.reads {
				t.Errorf("the system was read %d times, want %d", reads, c.reads)
			}
		})
	}
}

func TestExpandThatIsRefusedIsAskedOnce(t *testing.T) {
	f := newFake(t)
	f.set("/redfish/v1/", strings.TrimSuffix(f.docs["/redfish/v1/"], "}")+expandOffer+"}")
	for _, path := range []string{"/redfish/v1/Systems", "/redfish/v1/Managers"} {
		f.on("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "" {
				w.WriteHeader(http.StatusNotImplemented)
				return
			}
			f.usual(w, r)
		})
	}
	if _, err := f.client(t).Manager(t.Context()); err != nil {
		t.Fatal(err)
	}
	expanded := 0
	for _, line := range f.seen() {
		if strings.Contains(line, "$expand") {
			expanded++
		}
	}
	if expanded != 1 {
		t.Errorf("$expand was asked %d times, want once", expanded)
	}
}
