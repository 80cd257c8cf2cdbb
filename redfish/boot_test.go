// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	fullOverride  = `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI","BootSourceOverrideTarget":"Pxe"}}`
	plainOverride = `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`
	noOverride    = `{"Boot":{"BootSourceOverrideEnabled":"Disabled"}}`
	patchSystem   = "PATCH " + systemURI + " "
)

func booting(power, override string) string {
	return strings.Replace(systemJSON(power), `"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None"`, override, 1)
}

func TestBootOnceNamesTheTargetsThatTheBMCHas(t *testing.T) {
	f := newFake(t)
	err := f.client(t).PowerOnOnce(t.Context(), systemURI, self, "UefiHttp")
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "booting from UefiHttp; it offers None, Pxe, Hdd") || len(f.seen("PATCH")) != 0 {
		t.Errorf("error %v", err)
	}
}

func TestBootOnceIsNotWrittenAgainWhileItStands(t *testing.T) {
	for override, writes := range map[string]int{
		`"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":"UEFI"`:       0,
		`"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"`:                                       0,
		`"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":"Legacy"`:     1,
		`"BootSourceOverrideEnabled":"Continuous","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":"UEFI"`: 1,
		`"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Hdd","BootSourceOverrideMode":"UEFI"`:       1,
		`"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":"UEFI"`:   1,
	} {
		f := newFake(t)
		f.set(systemURI, booting("Off", override))
		if err := f.client(t).PowerOnOnce(t.Context(), systemURI, self, "Pxe"); err != nil || len(f.seen("PATCH")) != writes {
			t.Errorf("%s: error %v or not %d writes", override, err, writes)
		}
	}
}

// refusing answers a PATCH that holds a word with 400 and a body.
func (f *fakeBMC) refusing(word, says string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if strings.Contains(string(raw), word) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, says)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
		f.usual(w, r)
	}
}

func TestTheBootModeIsLeftOutForGoodOnlyAfterARefusalThatNamesIt(t *testing.T) {
	naming := `{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.8.PropertyNotWritable","MessageArgs":["BootSourceOverrideMode"]}]}}`
	full, plain := patchSystem+fullOverride, patchSystem+plainOverride
	for name, c := range map[string]struct {
		says string
		want []string
	}{
		"the refusal names it":                {naming, []string{full, plain, plain}},
		"the refusal names nothing":           {"", []string{full, plain, full, plain}},
		"the refusal names the whole request": {`{"error":{"message":"` + strings.ReplaceAll(fullOverride, `"`, "'") + `"}}`, []string{full, full}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.on("PATCH "+systemURI, f.refusing("BootSourceOverrideMode", c.says))
			bmc := f.client(t)
			for range 2 {
				f.set(systemURI, systemJSON("Off"))
				if err := bmc.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); err != nil && !statusIs(err, 400) {
					t.Fatal(err)
				}
			}
			wantLines(t, f.seen("PATCH"), c.want...)
		})
	}
}

func TestAPassingRefusalCostsNoBootMode(t *testing.T) {
	f := newFake(t)
	f.once("PATCH "+systemURI, status(http.StatusBadRequest))
	c := f.client(t)
	if err := c.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); err != nil {
		t.Fatal(err)
	}
	f.set(systemURI, systemJSON("Off"))
	if err := c.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); err != nil {
		t.Fatal(err)
	}
	wantLines(t, f.seen("PATCH"), patchSystem+fullOverride, patchSystem+plainOverride, patchSystem+fullOverride)
}

func TestAMachineIsNotSwitchedOnInAnotherBootMode(t *testing.T) {
	const standing = `"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None","BootSourceOverrideMode":`
	for name, c := range map[string]struct {
		shows string
		mode  BootMode
		sent  string // the mode in the PATCH
		on    bool
	}{
		"UEFI is asked for and shows":      {`"UEFI"`, BootUEFI, "UEFI", true},
		"UEFI is what is asked for":        {`"UEFI"`, "", "UEFI", true},
		"UEFI is asked for, Legacy stays":  {`"Legacy"`, BootUEFI, "UEFI", false},
		"Legacy is asked for and shows":    {`"Legacy"`, BootLegacy, "Legacy", true},
		"Legacy is asked for, UEFI stays":  {`"UEFI"`, BootLegacy, "Legacy", false},
		"UEFI is asked for, none is shown": {`null`, BootUEFI, "UEFI", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.set(systemURI, booting("Off", standing+c.shows))
			bmc := f.warm(t)
			f.on("PATCH "+systemURI, func(http.ResponseWriter, *http.Request) {
				f.set(systemURI, booting("Off", `"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":`+c.shows))
			})
			err := bmc.PowerOnOnce(t.Context(), systemURI, self, "Pxe", c.mode)
			var override *OverrideError
			if (err == nil) != c.on || errors.As(err, &override) == c.on || len(f.seen("POST")) == 1 != c.on {
				t.Errorf("error %v", err)
			}
			_ = bmc
		})
	}
}

func TestLegacyIsNeverLeftOut(t *testing.T) {
	f := newFake(t)
	f.on("PATCH "+systemURI, status(http.StatusBadRequest))
	if err := f.client(t).PowerOnOnce(t.Context(), systemURI, self, "Pxe", BootLegacy); !statusIs(err, 400) {
		t.Errorf("error %v", err)
	}
	wantLines(t, f.seen("PATCH"), patchSystem+strings.Replace(fullOverride, "UEFI", "Legacy", 1))
}

func TestClearBootWritesOnlyWhereAnOverrideStands(t *testing.T) {
	for override, want := range map[string]string{
		`"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"Pxe"`:   "",
		`"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"None"`:      "",
		`"BootSourceOverrideEnabled":null,"BootSourceOverrideTarget":null`:          "",
		`"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"`:       patchSystem + noOverride,
		`"BootSourceOverrideEnabled":"Continuous","BootSourceOverrideTarget":"Pxe"`: patchSystem + noOverride,
		`"BootSourceOverrideTarget":"Pxe"`:                                          patchSystem + noOverride,
	} {
		f := newFake(t)
		f.set(systemURI, booting("On", override))
		err := f.client(t).ClearBoot(t.Context(), systemURI, self)
		if got := strings.Join(f.seen("PATCH"), "\n"); err != nil || got != want {
			t.Errorf("%s: wrote %q, error %v", override, got, err)
		}
	}
}

func TestPowerOnOnceReadsBackWhatItWrote(t *testing.T) {
	for override, want := range map[string][]string{
		`"BootSourceOverrideEnabled":"Disabled"`: {"GET " + systemURI, patchSystem + fullOverride, "GET " + systemURI,
			"POST " + resetURI + ` {"ResetType":"On"}`},
		`"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"`: {"GET " + systemURI, "POST " + resetURI + ` {"ResetType":"On"}`},
	} {
		f := newFake(t)
		f.set(systemURI, booting("Off", override))
		c := f.warm(t)
		if err := c.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); err != nil {
			t.Error(err)
		}
		wantLines(t, f.seen(), want...)
	}
}

func TestPowerOnOnceWritesNothingToASystemThatIsNotOff(t *testing.T) {
	for _, power := range []string{"On", "PoweringOn", "PoweringOff", "Paused", "", "null"} {
		f := newFake(t)
		f.set(systemURI, systemJSON(power))
		if err := f.client(t).PowerOnOnce(t.Context(), systemURI, self, "Pxe"); !errors.Is(err, ErrNotOff) {
			t.Errorf("power %q: error %v", power, err)
		}
		if sent := f.seen("PATCH", "POST"); len(sent) != 1 { // the login
			t.Errorf("power %q: sent %q", power, sent)
		}
	}
}

func TestAPowerOnIsNotAskedForWithoutItsOverride(t *testing.T) {
	lost := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		what string
		h    http.HandlerFunc
		sent int
		may  bool
	}{
		"the override is refused":            {"PATCH " + systemURI, status(http.StatusConflict), 1, false},
		"the override may have been written": {"PATCH " + systemURI, lost, 1, false},
		"the power-on may have been asked":   {"POST " + resetURI, lost, 2, true},
		"the power-on is refused":            {"POST " + resetURI, status(http.StatusForbidden), 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			client := f.warm(t)
			f.on(c.what, c.h)
			err := client.PowerOnOnce(t.Context(), systemURI, self, "Pxe")
			if err == nil || MayHaveHappened(err) != c.may {
				t.Errorf("error %v, may have happened %v", err, MayHaveHappened(err))
			}
			if sent := f.seen("PATCH", "POST"); len(sent) != c.sent {
				t.Errorf("sent %q", sent)
			}
		})
	}
}

func TestAPowerOnGoesWithAnyTagBecauseItsOverrideChangedTheSystem(t *testing.T) {
	f := newFake(t)
	f.etags[systemURI] = `"before"`
	f.on("POST "+resetURI, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("If-Match") {
		case "":
			w.WriteHeader(http.StatusPreconditionRequired)
		case "*":
		default:
			w.WriteHeader(http.StatusPreconditionFailed)
		}
	})
	c := f.warm(t)
	for range 2 {
		if err := c.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); err != nil {
			t.Error(err)
		}
	}
}

func TestBootOrderIsWrittenOnlyWhileOff(t *testing.T) {
	for _, power := range []string{"On", "PoweringOff", "", "null"} {
		for _, order := range [][]string{{"Boot2", "Boot1"}, {"Boot1", "Boot2"}} {
			f := newFake(t)
			f.set(systemURI, systemJSON(power))
			err := f.client(t).SetBootOrder(t.Context(), systemURI, self, order)
			if !errors.Is(err, ErrNotOff) || len(f.seen("PATCH")) != 0 {
				t.Errorf("power %q: error %v", power, err)
			}
		}
	}
}

func TestBootOrderIsWrittenWhereItDiffers(t *testing.T) {
	f := newFake(t)
	c := f.client(t)
	for _, order := range [][]string{{"Boot1", "Boot2"}, {"Boot2", "Boot1"}} {
		if err := c.SetBootOrder(t.Context(), systemURI, self, order); err != nil {
			t.Fatal(err)
		}
	}
	wantLines(t, f.seen("PATCH"), patchSystem+`{"Boot":{"BootOrder":["Boot2","Boot1"]}}`)
	f.set(systemURI, `{"Id":"1","UUID":"`+systemUUID+`","PowerState":"Off","Boot":{"BootOrder":null}}`)
	var unsupported *UnsupportedError
	if err := c.SetBootOrder(t.Context(), systemURI, self, []string{"x"}); !errors.As(err, &unsupported) {
		t.Errorf("error %v", err)
	}
}

func TestTheSettingsResourceTakesBootChangesWithItsOwnETag(t *testing.T) {
	f := newFake(t)
	sd := systemURI + "/SD"
	f.set(systemURI, systemJSON("Off", `,"@Redfish.Settings":{"SettingsObject":{"@odata.id":"`+sd+`"}}`))
	f.set(sd, `{"Id":"SD","@odata.etag":"\"body\"","Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootOrder":["Boot2"]}}`)
	f.etags[sd] = `"sd"`
	f.etags[systemURI] = `"system"`
	var tags []string
	f.on("PATCH "+sd, func(w http.ResponseWriter, r *http.Request) { tags = append(tags, r.Header.Get("If-Match")) })
	c := f.warm(t)
	for name, write := range map[string]func(context.Context) error{
		"set although pending": func(ctx context.Context) error { return c.PowerOnOnce(ctx, systemURI, self, "Pxe") },
		"clear what pends":     func(ctx context.Context) error { return c.ClearBoot(ctx, systemURI, self) },
	} {
		if err := write(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantLines(t, tags, `"sd"`, `"sd"`)
	f.seen()
	if err := c.SetBootOrder(t.Context(), systemURI, self, []string{"Boot2"}); err != nil || len(f.seen("PATCH")) != 0 {
		t.Errorf("an order that pends was written again, error %v", err)
	}
	f.set(sd, `{"Id":"SD"}`)
	if err := c.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); err != nil {
		t.Fatal(err)
	}
	wantLines(t, f.seen("PATCH"), patchSystem+fullOverride)
}

func TestAWriteIsConditionalAndAnsweredOnceWithAFreshTag(t *testing.T) {
	for name, c := range map[string]struct {
		tag   string
		needs func(string) int // If-Match -> status
		want  []string
	}{
		"no tag, none needed":                        {"", func(string) int { return 204 }, []string{""}},
		"a tag is sent":                              {`"a"`, func(string) int { return 204 }, []string{`"a"`}},
		"a weak tag that is refused is sent strong":  {`W/"a-gzip"`, wants(`"a"`, 412), []string{`W/"a-gzip"`, `"a"`}},
		"an unquoted tag is quoted":                  {`a`, wants(`"a"`, 412), []string{`a`, `"a"`}},
		"428 without a tag is answered with any":     {"", wants("*", 428), []string{"", "*"}},
		"412 that stays is an error after one retry": {`"a"`, func(string) int { return 412 }, []string{`"a"`, `"a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.etags[systemURI] = c.tag
			var got []string
			f.on("PATCH "+systemURI, func(w http.ResponseWriter, r *http.Request) {
				got = append(got, r.Header.Get("If-Match"))
				w.WriteHeader(c.needs(r.Header.Get("If-Match")))
			})
			err := f.client(t).SetLED(t.Context(), systemURI, self, LEDLit)
			last := c.needs(c.want[len(c.want)-1])
			if (err == nil) != (last == 204) || err != nil && (!statusIs(err, last) || MayHaveHappened(err)) {
				t.Errorf("error %v", err)
			}
			wantLines(t, got, c.want...)
		})
	}
}

func wants(tag string, otherwise int) func(string) int {
	return func(got string) int {
		if got == tag {
			return 204
		}
		return otherwise
	}
}

func TestAfterA412EverythingIsCheckedAnew(t *testing.T) {
	f := newFake(t)
	f.etags[systemURI] = `"a"`
	f.on("PATCH "+systemURI, func(w http.ResponseWriter, _ *http.Request) {
		f.set(systemURI, systemJSON("On")) // somebody switched it on meanwhile
		w.WriteHeader(412)
	})
	err := f.client(t).PowerOnOnce(t.Context(), systemURI, self, "Pxe")
	if !errors.Is(err, ErrNotOff) || len(f.seen("PATCH")) != 1 {
		t.Errorf("error %v", err)
	}
}

func TestTheLocatorLight(t *testing.T) {
	base := `{"Id":"1","UUID":"` + systemUUID + `"`
	for name, c := range map[string]struct {
		doc  string
		led  IndicatorLED
		sent string
		fail bool
	}{
		"old property":                {base + `,"IndicatorLED":"Off"}`, LEDBlinking, `{"IndicatorLED":"Blinking"}`, false},
		"old property, already so":    {base + `,"IndicatorLED":"Lit"}`, LEDLit, "", false},
		"new property":                {base + `,"LocationIndicatorActive":false}`, LEDBlinking, `{"LocationIndicatorActive":true}`, false},
		"new property, already so":    {base + `,"LocationIndicatorActive":true}`, LEDBlinking, "", false},
		"both, the one that blinks":   {base + `,"IndicatorLED":"Lit","LocationIndicatorActive":true}`, LEDOff, `{"IndicatorLED":"Off"}`, false},
		"none":                        {base + `}`, LEDLit, "", true},
		"a state that cannot be sent": {base + `,"IndicatorLED":"Off"}`, LEDUnknown, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.set(systemURI, c.doc)
			err := f.client(t).SetLED(t.Context(), systemURI, self, c.led)
			got := strings.TrimPrefix(strings.Join(f.seen("PATCH"), "\n"), patchSystem)
			if got != c.sent || (err != nil) != c.fail {
				t.Errorf("sent %q, error %v", got, err)
			}
		})
	}
	f := newFake(t)
	f.set(systemURI, base+`,"IndicatorLED":"Off","LocationIndicatorActive":false}`)
	f.once("PATCH "+systemURI, status(400))
	if err := f.client(t).SetLED(t.Context(), systemURI, self, LEDLit); err != nil {
		t.Error(err)
	}
	wantLines(t, f.seen("PATCH"), patchSystem+`{"IndicatorLED":"Lit"}`, patchSystem+`{"LocationIndicatorActive":true}`)
}
