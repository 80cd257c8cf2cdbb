// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// to answers with a redirect, whose Location is written as given.
func to(code int, location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(code)
	}
}

// slashed is a BMC that redirects every write to the path with a slash, as older Supermicro do, and serves both.
func slashed(t *testing.T, code int) *fakeBMC {
	f := newFake(t)
	for _, what := range []string{"POST " + resetURI, "PATCH " + systemURI, "POST " + sessions} {
		_, path, _ := strings.Cut(what, " ")
		f.on(what, to(code, path+"/"))
	}
	f.on("POST "+sessions+"/", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logIn(w, r)
	})
	f.on("PATCH "+systemURI+"/", func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = systemURI
		f.usual(w, r)
	})
	f.on("GET "+systemURI+"/", func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = systemURI
		f.usual(w, r)
	})
	return f
}

func TestAWriteFollowsItsBMCToAnotherSpellingOnce(t *testing.T) {
	for _, code := range []int{301, 307, 308} {
		f := slashed(t, code)
		c := f.warm(t)
		if err := c.Reset(t.Context(), systemURI, self, ActionOn); err != nil {
			t.Fatalf("%d: %v", code, err)
		}
		const on = ` {"ResetType":"On"}`
		wantLines(t, f.seen(), "GET "+systemURI, "POST "+resetURI+on, "GET "+systemURI, "POST "+resetURI+"/"+on)
		if err := c.Reset(t.Context(), systemURI, self, ActionOn); err != nil {
			t.Fatalf("%d: %v", code, err)
		}
		wantLines(t, f.seen(), "GET "+systemURI, "GET "+systemURI, "POST "+resetURI+"/"+on) // it is remembered
		if err := c.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); err != nil {
			t.Errorf("%d: %v", code, err)
		}
		if got := f.seen(http.MethodPatch); len(got) != 2 || !strings.HasPrefix(got[1], "PATCH "+systemURI+"/ ") {
			t.Errorf("%d: the override was written by %q", code, got)
		}
	}
}

func TestASessionFollowsItsBMCToAnotherSpelling(t *testing.T) {
	f := slashed(t, 301)
	c := f.client(t)
	if _, err := c.System(t.Context(), systemURI); err != nil {
		t.Fatal(err)
	}
	credentials := ` {"UserName":"admin","Password":"` + password + `"}`
	wantLines(t, f.seen(http.MethodPost), "POST "+sessions+credentials, "POST "+sessions+"/"+credentials)
	f.endSessions()
	if _, err := c.System(t.Context(), systemURI); err != nil {
		t.Fatal(err)
	}
	wantLines(t, f.seen(http.MethodPost), "POST "+sessions+"/"+credentials)
}

func TestAWriteIsNotRepeatedWhereAnotherMachineIs(t *testing.T) {
	f := newFake(t)
	upper := strings.ToUpper(resetURI[len("/redfish/v1"):])
	f.on("POST "+resetURI, to(308, "/redfish/v1"+upper))
	f.set("/redfish/v1/SYSTEMS/1", strings.Replace(systemJSON("Off"), systemUUID, "11111111-2222-3333-4444-555555555555", 1))
	err := f.warm(t).Reset(t.Context(), systemURI, self, ActionOn)
	var other *IdentityError
	if !errors.As(err, &other) || other.URI != "/redfish/v1/SYSTEMS/1" || MayHaveHappened(err) {
		t.Errorf("error %v, want an IdentityError of the spelling that it leads to", err)
	}
	if got := f.seen(http.MethodPost); len(got) != 1 {
		t.Errorf("sent %q", got)
	}
}

func TestAWriteIsRedirectedOnce(t *testing.T) {
	f := newFake(t)
	f.on("POST "+resetURI, to(308, resetURI+"/"))
	f.on("POST "+resetURI+"/", to(308, resetURI))
	c := f.warm(t)
	for range 2 { // what did not work is not remembered
		if err := c.Reset(t.Context(), systemURI, self, ActionOn); !statusIs(err, 308) || MayHaveHappened(err) {
			t.Errorf("a loop ended in %v", err)
		}
		if got := f.seen(http.MethodPost); len(got) != 2 {
			t.Errorf("sent %q", got)
		}
	}
}

func TestTheBMCIsRestartedAtAnotherSpelling(t *testing.T) {
	const restart = managerURI + "/Actions/Manager.Reset"
	f := newFake(t)
	f.on("POST "+restart, to(308, restart+"/"))
	c := f.warm(t)
	want := ManagerIdentity{Systems: []SystemAt{{URI: systemURI, Identity: self}}}
	if err := c.ResetManager(t.Context(), want, true); err != nil {
		t.Fatal(err)
	}
	if got := f.seen(http.MethodPost); len(got) != 2 || !strings.HasPrefix(got[1], "POST "+restart+"/ ") {
		t.Errorf("sent %q", got)
	}
}

// The drives of this BMC are listed below the manager, so that the system is proven at its own place.
func TestTheEmulatorRedirectsAnInsertionToAnotherSpelling(t *testing.T) {
	m, bmc, self := emulated(t, emulator.MachineSpec{Profile: emulator.ProfileSupermicro})
	slash := m.Inject(emulator.Fault{Method: http.MethodPost, Path: "/redfish/v1/Managers/**", Count: 1, Action: emulator.Action{Status: 301, Redirect: "{path}/"}})
	if err := bmc.InsertMedia(t.Context(), mediaSystem(t, bmc), self, MediaRequest{URL: "http://192.0.2.9/a.iso"}); err != nil || slash.Hits() != 1 {
		t.Fatalf("%v, redirected %d times", err, slash.Hits())
	}
}

// mediaSystem is the URI of the one system behind a BMC.
func mediaSystem(t *testing.T, bmc BMC) string {
	t.Helper()
	manager, err := bmc.Manager(t.Context())
	if err != nil || len(manager.SystemURIs) != 1 {
		t.Fatalf("systems %v, %v", manager.SystemURIs, err)
	}
	return manager.SystemURIs[0]
}

func TestWhereARedirectLeadsAndWhichFieldFollowsIt(t *testing.T) {
	asked, err := url.Parse("https://192.0.2.1:443" + systemURI)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		status             int
		location, spelling string
		says               string
	}{
		"a slash more":                 {301, systemURI + "/", systemURI + "/", "systemURI"},
		"a slash more, as a whole URL": {307, "https://192.0.2.1" + systemURI + "/", systemURI + "/", "systemURI"},
		"another case":                 {308, "/redfish/v1/systems/1", "/redfish/v1/systems/1", "systemURI"},
		"see other":                    {303, systemURI + "/", "", "systemURI"},
		"found":                        {302, systemURI + "/", "", "systemURI"},
		"the same place":               {308, systemURI, "", "the same place"},
		"two slashes more":             {308, systemURI + "//", "", "systemURI"},
		"another system":               {308, "/redfish/v1/Systems/2", "", "a redirect to https://192.0.2.1:443/redfish/v1/Systems/2, which is not followed; it may be another machine's"},
		"a query":                      {308, systemURI + "/?a=b", "", "systemURI"},
		"another port": {308, "https://192.0.2.1:8080" + systemURI, "",
			"a redirect to https://192.0.2.1:8080" + systemURI + ", which is not followed; set spec.protocol.port to 8080"},
		"another scheme":      {308, "http://192.0.2.1" + systemURI, "", "the BMC leads away from TLS"},
		"another host":        {308, "https://bmc.example.com" + systemURI, "", "set its address, or spec.hostname, to bmc.example.com"},
		"credentials in it":   {308, "https://a:b@192.0.2.1" + systemURI, "", "does not say where to"},
		"no Location":         {308, "", "", "does not say where to"},
		"no URL":              {308, "://%zz", "", "does not say where to"},
		"a session's address": {308, "https://192.0.2.1:8443/redfish/v1/SessionService/Sessions/secret", "", "Sessions/(session), which"},
	} {
		t.Run(name, func(t *testing.T) {
			got := &answer{status: c.status, header: http.Header{"Location": {c.location}}}
			if spelling := respelled(asked, got); spelling != c.spelling {
				t.Errorf("followed to %q, want %q", spelling, c.spelling)
			}
			if words := redirectWords(asked, got); !strings.Contains(words, c.says) {
				t.Errorf("%q does not say %q", words, c.says)
			}
		})
	}
}

func TestThePlaceOfAResourceInAnotherSpelling(t *testing.T) {
	for name, c := range map[string]struct{ uri, path, other, want string }{
		"the resource itself":             {systemURI, systemURI, systemURI + "/", systemURI + "/"},
		"the resource without its slash":  {systemURI + "/", systemURI + "/", systemURI, systemURI},
		"an action of it":                 {systemURI, resetURI, "/redfish/v1/systems/1/actions/ComputerSystem.Reset", "/redfish/v1/systems/1"},
		"a resource whose name begins so": {systemURI, systemURI + "0/Actions/A", systemURI + "0/Actions/A/", systemURI},
		"a resource elsewhere":            {systemURI, managerURI + "/A", managerURI + "/A/", systemURI},
		"a shorter path":                  {systemURI, "/redfish", "/redfish/", systemURI},
	} {
		if got := placeThere(c.uri, c.path, c.other); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// FuzzRedirect: what is followed is the same path on the same service, but for one slash and the case of letters.
func FuzzRedirect(f *testing.F) {
	asked, err := url.Parse("https://192.0.2.1:443" + resetURI)
	if err != nil {
		f.Fatal(err)
	}
	for _, location := range []string{resetURI + "/", "https://192.0.2.1:443" + strings.ToLower(resetURI), "//evil" + resetURI + "/", "?a", "%2f"} {
		f.Add(location, 308)
	}
	f.Fuzz(func(t *testing.T, location string, status int) {
		got := &answer{status: status, header: http.Header{"Location": {location}}}
		other := respelled(asked, got)
		if strings.ContainsAny(redirectWords(asked, got), "\r\n") {
			t.Errorf("%q makes more than one line", location)
		}
		if other == "" {
			return
		}
		if !strings.EqualFold(strings.TrimSuffix(other, "/"), resetURI) {
			t.Errorf("%q is followed to %q", location, other)
		}
		if at := placeThere(systemURI, resetURI, other); !strings.EqualFold(at, systemURI) {
			t.Errorf("%q is proven at %q", location, at)
		}
	})
}
