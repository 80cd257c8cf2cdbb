// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// instant is a fleet without delays.
var instant = Delays{Power: -1, Boot: -1, Shutdown: -1, Erase: -1, BMCReset: -1}

// startFleet starts a fleet of one machine that ends with the test.
func startFleet(t *testing.T, opts Options, spec MachineSpec) (*Fleet, *Machine) {
	t.Helper()
	f := New(opts)
	m := f.Add(spec)
	if err := f.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f, m
}

// caller speaks HTTP with one BMC.
type caller struct {
	t      *testing.T
	client *http.Client
	base   string
	user   string
	pass   string
	header map[string]string
}

func call(t *testing.T, f *Fleet, m *Machine) *caller {
	c := &caller{t: t, client: f.Client(), base: m.URL(), header: map[string]string{}}
	c.user, c.pass = m.Credentials()
	t.Cleanup(c.client.CloseIdleConnections)
	return c
}

type result struct {
	status int
	header http.Header
	raw    []byte
	doc    map[string]any
	err    error
	close  bool // the server ends the connection
}

// try sends a request; body is marshalled unless nil.
func (c *caller) try(ctx context.Context, method, path string, body any) result {
	c.t.Helper()
	var payload io.Reader
	if text, isText := body.(string); isText {
		payload = strings.NewReader(text)
	} else if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		payload = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, payload)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.user != "" {
		req.SetBasicAuth(c.user, c.pass)
	}
	for k, v := range c.header {
		req.Header.Set(k, v)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return result{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	res := result{status: resp.StatusCode, header: resp.Header, close: resp.Close}
	res.raw, res.err = io.ReadAll(resp.Body)
	_ = json.Unmarshal(res.raw, &res.doc) // faults send what is not JSON
	return res
}

// do is try with a status that must come.
func (c *caller) do(method, path string, body any, status int) result {
	c.t.Helper()
	res := c.try(context.Background(), method, path, body)
	if res.err != nil {
		c.t.Fatalf("%s %s: %v", method, path, res.err)
	}
	if res.status != status {
		c.t.Fatalf("%s %s: status %d, want %d: %s", method, path, res.status, status, res.raw)
	}
	return res
}

func (c *caller) get(path string) map[string]any { return c.do("GET", path, nil, http.StatusOK).doc }

func (c *caller) reset(m *Machine, kind ResetType) result {
	return c.try(context.Background(), "POST", strings.TrimRight(m.SystemURI(), "/")+"/Actions/ComputerSystem.Reset", map[string]any{"ResetType": kind})
}

// field follows names through objects and lists.
func field(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			obj, _ := v.(map[string]any)
			v = obj[p]
		case int:
			list, _ := v.([]any)
			if p >= len(list) {
				return nil
			}
			v = list[p]
		}
	}
	return v
}

func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestEveryLinkOfEveryProfileLeadsToAResource(t *testing.T) {
	for _, name := range ProfileNames() {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Profile: name})
			c := call(t, f, m)
			seen := map[string]bool{}
			var visit func(uri string)
			var follow func(v any)
			follow = func(v any) {
				switch v := v.(type) {
				case map[string]any:
					for k, inner := range v {
						if uri, isText := inner.(string); isText && (k == "@odata.id" || k == "@Redfish.ActionInfo") {
							visit(uri)
						}
						follow(inner)
					}
				case []any:
					for _, inner := range v {
						follow(inner)
					}
				}
			}
			visit = func(uri string) {
				if !seen[uri] {
					seen[uri] = true
					body := c.get(uri)
					if got := body["@odata.id"]; got != uri {
						t.Errorf("%s calls itself %v", uri, got)
					}
					follow(body)
				}
			}
			visit("/redfish/v1/")
			if len(seen) < 25 {
				t.Errorf("only %d resources were found", len(seen))
			}
			if !seen[m.SystemURI()] {
				t.Errorf("the system %s was not found", m.SystemURI())
			}
		})
	}
}

func TestProfilesDifferAsHardwareDoes(t *testing.T) {
	for name, want := range map[string]struct {
		system     string
		already    int
		inline     bool
		etag       bool
		expand     int
		httpTarget bool
	}{
		ProfileGeneric:    {"/redfish/v1/Systems/1", 204, true, true, 1, true},
		ProfileDell:       {"/redfish/v1/Systems/System.Embedded.1", 409, true, false, 1, true},
		ProfileHPE:        {"/redfish/v1/Systems/1/", 400, true, true, 1, true},
		ProfileSupermicro: {"/redfish/v1/Systems/1", 200, false, true, 1, true},
		ProfileLenovo:     {"/redfish/v1/Systems/1", 204, true, true, 1, false},
		ProfileOpenBMC:    {"/redfish/v1/Systems/system", 204, false, false, 0, false},
		ProfileAMI:        {"/redfish/v1/Systems/Self", 204, false, true, 1, true},
		ProfileDGX:        {"/redfish/v1/Systems/DGX", 204, false, true, 1, false}, // its targets are in /SD
	} {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Profile: name})
			c := call(t, f, m)
			if m.SystemURI() != want.system {
				t.Errorf("system %s, want %s", m.SystemURI(), want.system)
			}
			res := c.do("GET", want.system, nil, 200)
			reset := field(res.doc, "Actions", "#ComputerSystem.Reset")
			if inline := field(reset, "ResetType@Redfish.AllowableValues") != nil; inline != want.inline {
				t.Errorf("reset types inline: %v, want %v", inline, want.inline)
			}
			if etag := res.header.Get("ETag") != ""; etag != want.etag {
				t.Errorf("entity tag: %v, want %v", etag, want.etag)
			}
			targets, _ := json.Marshal(field(res.doc, "Boot", "BootSourceOverrideTarget@Redfish.AllowableValues"))
			if offered := strings.Contains(string(targets), "UefiHttp"); offered != want.httpTarget {
				t.Errorf("UefiHttp offered: %v, want %v", offered, want.httpTarget)
			}
			nics := c.get("/redfish/v1/Systems?$expand=.($levels=1)")
			if expanded := field(nics, "Members", 0, "PowerState") != nil; expanded != (want.expand == 1) {
				t.Errorf("expanded: %v, want %v", expanded, want.expand == 1)
			}
			if res := c.reset(m, ResetForceOff); res.status != want.already {
				t.Errorf("ForceOff of a machine that is off: %d, want %d", res.status, want.already)
			}
		})
	}
}

func TestTheSameSeedGivesTheSameFleet(t *testing.T) {
	describe := func(seed uint64) string {
		f := New(Options{Seed: seed, InMemory: true})
		defer f.Close()
		var all []any
		for _, name := range ProfileNames() {
			m := f.Add(MachineSpec{Profile: name})
			all = append(all, m.Name(), m.Identity(), m.BMCMAC(), m.NICs(), m.Drives()[0].Serial, m.Drives()[0].WWID)
		}
		raw, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if first, second := describe(7), describe(7); first != second {
		t.Error("two fleets of one seed differ")
	}
	if describe(7) == describe(8) {
		t.Error("two seeds give one fleet")
	}
}

func TestAThousandMachinesAnswerOnTheirOwnAddresses(t *testing.T) {
	f := New(Options{Delays: instant})
	seen := map[string]bool{}
	for range 1000 {
		m := f.Add(MachineSpec{})
		id := m.Identity()
		nics := m.NICs()
		for _, unique := range []string{id.UUID, id.SerialNumber, m.BMCMAC(), nics[0].MACAddress, nics[1].MACAddress} {
			if seen[unique] {
				t.Fatalf("%s is there twice", unique)
			}
			seen[unique] = true
		}
	}
	if err := f.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, m := range f.Machines() {
		if i%100 != 0 {
			continue
		}
		if got := call(t, f, m).get(m.SystemURI())["UUID"]; got != m.Identity().UUID {
			t.Errorf("%s answers as %v, want %s", m.URL(), got, m.Identity().UUID)
		}
	}
}

func TestANetworkGivesEveryBMCItsOwnAddress(t *testing.T) {
	f := New(Options{Network: "127.0.77.0/24", InMemory: true, Port: 8000})
	first, second := f.Add(MachineSpec{}), f.Add(MachineSpec{})
	if err := f.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for m, want := range map[*Machine]string{first: "http://127.0.77.1:8000", second: "http://127.0.77.2:8000"} {
		if m.URL() != want {
			t.Errorf("%s, want %s", m.URL(), want)
		}
	}
}

func TestWhatIsWrongWithAFleetIsToldByStart(t *testing.T) {
	for name, c := range map[string]struct {
		opts  Options
		specs []MachineSpec
		want  string
	}{
		"a profile that does not exist":  {Options{}, []MachineSpec{{Profile: "nokia"}}, `profile "nokia", which does not exist`},
		"two machines of one name":       {Options{}, []MachineSpec{{Name: "a"}, {Name: "a"}}, `"a" is taken`},
		"a network that is none":         {Options{Network: "127.0.0"}, []MachineSpec{{}}, "write it like 127.0.1.0/24"},
		"more machines than the network": {Options{Network: "127.0.9.0/30"}, []MachineSpec{{}, {}, {}, {}}, "no address for BMC number 4"},
	} {
		t.Run(name, func(t *testing.T) {
			f := New(c.opts)
			defer f.Close()
			for _, s := range c.specs {
				f.Add(s)
			}
			if err := f.Start(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %s", err, c.want)
			}
		})
	}
}
