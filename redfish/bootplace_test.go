// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

const pendingURI = systemURI + "/Pending"

// onlyShown makes a BMC refuse what a resource does not show in Boot, and hold the system to If-Match where asked.
func (f *fakeBMC) onlyShown(uri string, ifMatch bool) {
	f.on("PATCH "+uri, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		shown := f.docs[uri]
		f.mu.Unlock()
		if ifMatch && r.Header.Get("If-Match") == "" {
			w.WriteHeader(http.StatusPreconditionRequired)
			return
		}
		for _, property := range []string{propertyEnabled, propertyTarget, propertyMode, propertyOrder} {
			if strings.Contains(string(raw), `"`+property+`"`) && !strings.Contains(shown, `"`+property+`":`) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":{"message":"The property `+property+` is unknown."}}`)
				return
			}
		}
		r.Body = io.NopCloser(strings.NewReader(string(raw)))
		f.usual(w, r)
	})
}

// The shapes are those of captured trees (Lenovo SR670 V2, DGX H100, GB200) and of iDRAC9 7.x as its documentation lists them.
func TestEachBootPropertyIsWrittenWhereItIsShown(t *testing.T) {
	const (
		system        = "PATCH " + systemURI + " "
		pending       = "PATCH " + pendingURI + " "
		shownOverride = `"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None"`
		order         = `"BootOrder":["Boot1","Boot2"]`
		newOrder      = `{"Boot":{"BootOrder":["Boot2","Boot1"]}}`
		onlyMode      = `{"Boot":{"BootSourceOverrideMode":"UEFI"}}`
	)
	for name, c := range map[string]struct {
		system, pending string // Boot of each
		override, order []string
	}{
		"Lenovo XCC shows only the order in /Pending": {
			shownOverride + `,"BootSourceOverrideMode":"UEFI",` + order, order,
			[]string{system + fullOverride}, []string{pending + newOrder}},
		"a DGX H100 shows all in /SD": {
			shownOverride + `,"BootSourceOverrideMode":null,` + order, shownOverride + `,"BootSourceOverrideMode":null,` + order,
			[]string{pending + fullOverride}, []string{pending + newOrder}},
		"a GB200 shows the override without mode in /Settings": {
			shownOverride + "," + order, shownOverride + "," + order,
			[]string{pending + plainOverride}, []string{pending + newOrder}},
		"iDRAC9 7.x shows order and mode in /Settings": {
			shownOverride + `,"BootSourceOverrideMode":"UEFI",` + order, `"BootSourceOverrideMode":"UEFI","StopBootOnFault":"Never",` + order,
			[]string{system + plainOverride}, []string{pending + newOrder}},
		"iDRAC9 7.x that would boot in the other mode": {
			shownOverride + `,"BootSourceOverrideMode":"Legacy",` + order, `"BootSourceOverrideMode":"Legacy",` + order,
			[]string{pending + onlyMode, system + plainOverride}, []string{pending + newOrder}},
		"a settings resource that shows nothing of Boot": {
			shownOverride + `,"BootSourceOverrideMode":"UEFI",` + order, `"Other":1`,
			[]string{system + fullOverride}, []string{system + newOrder}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			doc := `{"Id":"1","UUID":"` + systemUUID + `","PowerState":"Off","@Redfish.Settings":{"SettingsObject":{"@odata.id":"` + pendingURI + `"}},
				"Actions":{"#ComputerSystem.Reset":{"target":"` + resetURI + `"}},"Boot":{` + c.system + `}}`
			settings := `{"Id":"Pending","Boot":{` + c.pending + `}}`
			f.set(systemURI, doc)
			f.set(pendingURI, settings)
			f.etags[pendingURI] = `"p"`
			f.onlyShown(systemURI, false)
			f.onlyShown(pendingURI, true)
			bmc := f.warm(t)
			if err := bmc.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); err != nil {
				t.Error(err)
			}
			wantLines(t, f.seen("PATCH"), c.override...)
			f.set(systemURI, doc)
			f.set(pendingURI, settings)
			if err := bmc.SetBootOrder(t.Context(), systemURI, self, []string{"Boot2", "Boot1"}); err != nil {
				t.Error(err)
			}
			wantLines(t, f.seen("PATCH"), c.order...)
		})
	}
}

func TestAnOverrideIsClearedWhereItIsShown(t *testing.T) {
	const once, off = `"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"`, `"BootSourceOverrideEnabled":"Disabled"`
	for name, c := range map[string]struct {
		system, pending string
		want            string
	}{
		"the system shows it, the settings only an order": {once, `"BootOrder":[]`, patchSystem + noOverride},
		"both show it": {once, once, "PATCH " + pendingURI + " " + noOverride},
		"the system shows it, the settings that it is off": {once, off, patchSystem + noOverride},
		"the settings show it still":                       {off, once, "PATCH " + pendingURI + " " + noOverride},
		"neither shows it":                                 {off, off, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.set(systemURI, booting("On", c.system)[:len(booting("On", c.system))-1]+`,"@Redfish.Settings":{"SettingsObject":{"@odata.id":"`+pendingURI+`"}}}`)
			f.set(pendingURI, `{"Id":"Pending","Boot":{`+c.pending+`}}`)
			bmc := f.warm(t)
			err := bmc.ClearBoot(t.Context(), systemURI, self)
			if got := strings.Join(f.seen("PATCH"), "\n"); err != nil || got != c.want {
				t.Errorf("wrote %q, %v", got, err)
			}
		})
	}
}

// A settings resource that takes Disabled and changes nothing of the system is that of AMI boards (/SD).
func TestAnOverrideThatStaysIsNotWrittenForEver(t *testing.T) {
	const pxe, off = `"BootSourceOverrideEnabled":"Continuous","BootSourceOverrideTarget":"Pxe"`, `"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None"`
	for name, c := range map[string]struct {
		system http.HandlerFunc // how the system answers a PATCH
		want   []string
	}{
		"where the system takes it and keeps its override": {status(http.StatusNoContent), []string{patchSystem + noOverride}},
		"where the system refuses it": {status(http.StatusBadRequest), []string{patchSystem + noOverride,
			patchSystem + `{"Boot":{"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			system := func(power string) {
				f.set(systemURI, booting(power, pxe)[:len(booting(power, pxe))-1]+`,"@Redfish.Settings":{"SettingsObject":{"@odata.id":"`+pendingURI+`"}}}`)
			}
			system("On")
			f.set(pendingURI, `{"Id":"Pending","Boot":{`+pxe+`}}`)
			f.on("PATCH "+systemURI, c.system)
			f.on("PATCH "+pendingURI, func(w http.ResponseWriter, _ *http.Request) {
				f.set(pendingURI, `{"Id":"Pending","Boot":{`+off+`}}`)
				w.WriteHeader(http.StatusOK)
			})
			bmc := f.warm(t)
			var last error
			for range 5 {
				last = bmc.ClearBoot(t.Context(), systemURI, self)
			}
			wantLines(t, f.seen("PATCH"), append([]string{"PATCH " + pendingURI + " " + noOverride}, c.want...)...)
			var unsupported *UnsupportedError
			if !errors.As(last, &unsupported) || !strings.Contains(last.Error(), "clear it at the BMC") {
				t.Errorf("in the end error %v", last)
			}
			system("Off")
			_ = bmc.ClearBoot(t.Context(), systemURI, self)
			wantLines(t, f.seen("PATCH"), c.want...)
		})
	}
}

func TestARefusalAtOneResourceIsFollowedByOneTryAtTheOther(t *testing.T) {
	for name, c := range map[string]struct {
		pending string
		refuses []string // resources that answer 400
		want    []string
		fails   bool
	}{
		"the settings refuse what they show": {`"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None"`, []string{pendingURI},
			[]string{"PATCH " + pendingURI, "PATCH " + systemURI}, false},
		"the system refuses what the settings do not show": {`"BootOrder":[]`, []string{systemURI},
			[]string{"PATCH " + systemURI, "PATCH " + pendingURI}, false},
		"both refuse": {`"BootOrder":[]`, []string{systemURI, pendingURI}, []string{"PATCH " + systemURI, "PATCH " + pendingURI}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.set(systemURI, systemJSON("Off", `,"@Redfish.Settings":{"SettingsObject":{"@odata.id":"`+pendingURI+`"}}`))
			f.set(pendingURI, `{"Id":"Pending","Boot":{`+c.pending+`}}`)
			for _, uri := range c.refuses {
				f.on("PATCH "+uri, f.refusing("BootSourceOverrideEnabled",
					`{"error":{"message":"BootSourceOverrideEnabled at `+uri+` cannot be written"}}`))
			}
			bmc := f.warm(t)
			err := bmc.PowerOnOnce(t.Context(), systemURI, self, "Pxe")
			var got []string
			for _, line := range f.seen("PATCH") {
				method, rest, _ := strings.Cut(line, " ")
				uri, _, _ := strings.Cut(rest, " ")
				got = append(got, method+" "+uri)
			}
			wantLines(t, got, c.want...)
			if (err != nil) != c.fails || MayHaveHappened(err) {
				t.Errorf("error %v", err)
			}
			if len(c.refuses) == 2 && !strings.Contains(err.Error(), "at "+systemURI+" cannot be written") {
				t.Errorf("error %v; want that of the first resource", err)
			}
		})
	}
}

func TestAChangeWaitsForASettingsResourceThatCannotBeRead(t *testing.T) {
	f := newFake(t)
	f.set(systemURI, systemJSON("Off", `,"@Redfish.Settings":{"SettingsObject":{"@odata.id":"`+pendingURI+`"}}`))
	bmc := f.warm(t)
	f.on("GET "+pendingURI, status(http.StatusServiceUnavailable))
	if err := bmc.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); !statusIs(err, 503) || len(f.seen("PATCH", "POST")) != 0 {
		t.Errorf("error %v", err)
	}
}
