// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	systemURI  = "/redfish/v1/Systems/1"
	managerURI = "/redfish/v1/Managers/1"
	resetURI   = systemURI + "/Actions/ComputerSystem.Reset"
	sessions   = "/redfish/v1/SessionService/Sessions"
	systemUUID = "4c4c4544-0035-3410-8050-c6c04f314733"
	password   = "correct horse"
)

var (
	self   = Identity{UUID: systemUUID}
	login0 = Credentials{Username: "admin", Password: password}
)

// fakeBMC is a small BMC with faults on demand. Its documents may be changed between calls.
type fakeBMC struct {
	server *httptest.Server

	mu       sync.Mutex
	docs     map[string]string           // path -> JSON
	etags    map[string]string           // path -> ETag header
	override map[string]http.HandlerFunc // "METHOD path" -> handler, before anything else
	tokens   map[string]bool
	log      []string // "METHOD path body"
	logins   int      // attempts with credentials that were refused
	basicOff bool
}

func newFake(t *testing.T) *fakeBMC {
	f := bareFake()
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func newTLSFake(t *testing.T) *fakeBMC {
	f := bareFake()
	f.server = httptest.NewTLSServer(f)
	f.server.Config.ErrorLog = discardLog
	t.Cleanup(f.server.Close)
	return f
}

func bareFake() *fakeBMC {
	f := &fakeBMC{docs: map[string]string{}, etags: map[string]string{}, override: map[string]http.HandlerFunc{}, tokens: map[string]bool{}}
	f.docs["/redfish/v1/"] = `{"@odata.id":"/redfish/v1/","@odata.type":"#ServiceRoot.v1_9_0.ServiceRoot","RedfishVersion":"1.11.0","Vendor":"Acme",
		"Systems":{"@odata.id":"/redfish/v1/Systems"},"Managers":{"@odata.id":"/redfish/v1/Managers"},
		"Links":{"Sessions":{"@odata.id":"` + sessions + `"}}}`
	f.docs["/redfish/v1/Systems"] = `{"Members":[{"@odata.id":"` + systemURI + `"}]}`
	f.docs["/redfish/v1/Managers"] = `{"Members":[{"@odata.id":"` + managerURI + `"}]}`
	f.docs[managerURI] = `{"@odata.id":"` + managerURI + `","Id":"1","ManagerType":"BMC","Model":"M","FirmwareVersion":"1.2","LastResetTime":"2024-03-01T00:00:00Z",
		"Links":{"ManagerForServers":[{"@odata.id":"` + systemURI + `"}]},"Actions":{"#Manager.Reset":{"target":"` + managerURI + `/Actions/Manager.Reset","ResetType@Redfish.AllowableValues":["GracefulRestart"]}}}`
	f.docs[systemURI] = systemJSON("Off")
	return f
}

// systemJSON is the usual system with a power state and further fields (", ..." or nothing).
func systemJSON(power string, more ...string) string {
	return `{"@odata.id":"` + systemURI + `","Id":"1","UUID":"` + systemUUID + `","SerialNumber":"S1","PowerState":"` + power + `",
		"Status":{"Health":"OK","HealthRollup":"Warning"},"IndicatorLED":"Off",
		"Boot":{"BootSourceOverrideMode":"UEFI","BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None","BootOrder":["Boot1","Boot2"],
			"BootSourceOverrideTarget@Redfish.AllowableValues":["None","Pxe","Hdd"]},
		"Actions":{"#ComputerSystem.Reset":{"target":"` + resetURI + `",
			"ResetType@Redfish.AllowableValues":["On","ForceOff","GracefulShutdown","GracefulRestart","ForceRestart"]}}` + strings.Join(more, "") + `}`
}

func (f *fakeBMC) set(path, doc string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.docs[path] = doc
}

// on replaces the answer to "METHOD path".
func (f *fakeBMC) on(what string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.override[what] = h
}

// once answers the first such request with h, and the others as usual.
func (f *fakeBMC) once(what string, h http.HandlerFunc) {
	var done sync.Once
	f.on(what, func(w http.ResponseWriter, r *http.Request) {
		used := false
		done.Do(func() { used = true; h(w, r) })
		if !used {
			f.usual(w, r)
		}
	})
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func (f *fakeBMC) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(raw)))
	f.mu.Lock()
	f.log = append(f.log, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(raw)))
	h := f.override[r.Method+" "+r.URL.Path]
	f.mu.Unlock()
	if h != nil {
		h(w, r)
		return
	}
	f.usual(w, r)
}

func (f *fakeBMC) usual(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path == sessions && r.Method == http.MethodPost {
		f.logIn(w, r)
		return
	}
	if r.URL.Path != "/redfish/v1/" && !f.authorised(r) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch r.Method {
	case http.MethodGet:
		doc, ok := f.docs[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if tag := f.etags[r.URL.Path]; tag != "" {
			w.Header().Set("ETag", tag)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, doc)
	case http.MethodDelete:
		delete(f.tokens, r.Header.Get("X-Auth-Token"))
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPatch:
		f.patchBoot(r)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// patchBoot shows the boot override that is asked for from now on; other changes are accepted and forgotten.
func (f *fakeBMC) patchBoot(r *http.Request) {
	var asked struct{ Boot map[string]any }
	var doc map[string]any
	_ = json.NewDecoder(r.Body).Decode(&asked)
	if json.Unmarshal([]byte(f.docs[r.URL.Path]), &doc) != nil {
		return
	}
	delete(asked.Boot, "BootOrder")
	boot, _ := doc["Boot"].(map[string]any)
	if boot == nil {
		return
	}
	maps.Copy(boot, asked.Boot)
	changed, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	f.docs[r.URL.Path] = string(changed)
}

func (f *fakeBMC) logIn(w http.ResponseWriter, r *http.Request) {
	var got struct{ UserName, Password string }
	_ = json.NewDecoder(r.Body).Decode(&got)
	if got.UserName != login0.Username || got.Password != password {
		f.logins++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	token := "token-" + strconv.Itoa(len(f.log))
	f.tokens[token] = true
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", sessions+"/"+token)
	w.WriteHeader(http.StatusCreated)
}

func (f *fakeBMC) authorised(r *http.Request) bool {
	if f.tokens[r.Header.Get("X-Auth-Token")] {
		return true
	}
	user, pass, ok := r.BasicAuth()
	if ok && (user != login0.Username || pass != password) {
		f.logins++
	}
	return ok && user == login0.Username && pass == password && !f.basicOff
}

func (f *fakeBMC) endSessions() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokens = map[string]bool{}
}

// seen returns the requests since the last call; without arguments all, else those with one of the methods.
func (f *fakeBMC) seen(methods ...string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, line := range f.log {
		method, _, _ := strings.Cut(line, " ")
		if len(methods) == 0 || strings.Contains(strings.Join(methods, " "), method) {
			out = append(out, line)
		}
	}
	f.log = nil
	return out
}

func (f *fakeBMC) endpoint() Endpoint { return endpointOf(f.server.URL) }

func endpointOf(raw string) Endpoint {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		panic(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		panic(err)
	}
	return Endpoint{Address: host, Port: n, Scheme: u.Scheme}
}

func (f *fakeBMC) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})
}

// client returns a client of a pool that is closed at the end of the test.
func (f *fakeBMC) client(t *testing.T, options ...PoolOptions) BMC {
	return poolOf(t, options...).Get("bmc", f.endpoint(), login0)
}

// warm returns a client that is logged in already, and forgets the requests made for it.
func (f *fakeBMC) warm(t *testing.T, options ...PoolOptions) BMC {
	t.Helper()
	c := f.client(t, options...)
	if _, err := c.Manager(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.seen()
	return c
}

func poolOf(t *testing.T, options ...PoolOptions) *Pool {
	first := append(options, PoolOptions{})[0]
	if first.BusyPause == 0 {
		first.BusyPause = 1
	}
	if first.ShowPause == 0 {
		first.ShowPause = 1
	}
	pool := NewPool(first)
	t.Cleanup(func() { _ = pool.Close(t.Context()) })
	return pool
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != len(want) {
		t.Errorf("requests:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
