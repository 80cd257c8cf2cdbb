// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestEveryWriteIsLoggedWithoutSecrets(t *testing.T) {
	f, m := startFleet(t, Options{InMemory: true, Delays: instant, Password: "hush"}, MachineSpec{Name: "a"})
	c := call(t, f, m)
	session := c.do("POST", sessionsPath, login{"UserName": "admin", "Password": "hush"}, 201)
	user := c.user
	c.user, c.header["X-Auth-Token"] = "", session.header.Get("X-Auth-Token")
	c.do("PATCH", m.SystemURI(), boot{"IndicatorLED": "Lit"}, 200)
	c.user = user
	delete(c.header, "X-Auth-Token")
	c.reset(m, ResetOn)
	c.do("DELETE", "/redfish/v1/Systems/1", nil, 405)
	c.do("PATCH", m.SystemURI(), `password=hush`, 400)
	c.pass = "hush, hush"
	c.reset(m, ResetForceOff)

	uuid := m.Identity().UUID
	want := []Write{
		{Number: 1, Machine: "a", Method: "POST", Path: sessionsPath, Body: `{"Password":"***","UserName":"admin"}`, User: "admin", Status: 201, Executed: true, Power: PowerOff},
		{Number: 2, Machine: "a", Method: "PATCH", Path: "/redfish/v1/Systems/1", Body: `{"IndicatorLED":"Lit"}`, Auth: "session:1", User: "admin", Status: 200, Executed: true, Power: PowerOff},
		{Number: 3, Machine: "a", Method: "POST", Path: pathResetOf("1"), Body: `{"ResetType":"On"}`, Auth: "basic:admin", User: "admin", Status: 204, Executed: true, Power: PowerOff},
		{Number: 4, Machine: "a", Method: "DELETE", Path: "/redfish/v1/Systems/1", Auth: "basic:admin", User: "admin", Status: 405, Power: PowerOn},
		{Number: 5, Machine: "a", Method: "PATCH", Path: "/redfish/v1/Systems/1", Body: "(13 bytes that are not JSON)", Auth: "basic:admin", User: "admin", Status: 400, Executed: true, Power: PowerOn},
		{Number: 6, Machine: "a", Method: "POST", Path: pathResetOf("1"), Body: `{"ResetType":"ForceOff"}`, Auth: "basic:admin", Status: 401, Power: PowerOn},
	}
	got := f.Writes(Filter{})
	for i := range want {
		want[i].SystemUUID = uuid
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Write{}, "Time")); diff != "" {
		t.Error(diff)
	}
	for _, w := range got {
		if strings.Contains(w.Body, "hush") {
			t.Errorf("write %d tells the password: %s", w.Number, w.Body)
		}
	}
}

func pathResetOf(id string) string {
	return "/redfish/v1/Systems/" + id + "/Actions/ComputerSystem.Reset"
}

func TestWritesAndRequestsAreSelectedAndCounted(t *testing.T) {
	f := New(Options{InMemory: true, Delays: instant})
	first, second := f.Add(MachineSpec{Name: "a"}), f.Add(MachineSpec{Name: "b"})
	if err := f.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, m := range []*Machine{first, second} {
		c := call(t, f, m)
		c.get(m.SystemURI())
		c.get(m.SystemURI() + "/")
		c.reset(m, ResetOn)
		c.do("GET", "/redfish/v1/Nothing", nil, 404)
	}
	mark := f.LastWrite()
	call(t, f, second).reset(second, ResetForceOff)
	for name, c := range map[string]struct {
		filter Filter
		want   int
	}{
		"all":          {Filter{}, 3},
		"of a machine": {Filter{Machine: "a"}, 1},
		"of a method":  {Filter{Method: "PATCH"}, 0},
		"of a path":    {Filter{Path: "**/ComputerSystem.Reset"}, 3},
		"since a mark": {Filter{Since: mark}, 1},
	} {
		if got := len(f.Writes(c.filter)); got != c.want {
			t.Errorf("%s: %d writes, want %d", name, got, c.want)
		}
	}
	want := []RequestCount{
		{"a", "GET", "/redfish/v1/Systems/{system}", 2},
		{"a", "POST", "/redfish/v1/Systems/{system}/Actions/ComputerSystem.Reset", 1},
		{"a", "GET", "other", 1},
	}
	if diff := cmp.Diff(want, f.Requests(Filter{Machine: "a"})); diff != "" {
		t.Error(diff)
	}
	f.ResetRequests()
	if n := f.RequestTotal(Filter{}); n != 0 {
		t.Errorf("%d requests after forgetting them", n)
	}
}

func TestTheLogForgetsTheOldestWrites(t *testing.T) {
	f, m := startFleet(t, Options{InMemory: true, Delays: instant, JournalLimit: 10}, MachineSpec{})
	c := call(t, f, m)
	for range 25 {
		c.do("DELETE", m.SystemURI(), nil, 405)
	}
	writes := f.Writes(Filter{})
	if len(writes) > 10 || writes[len(writes)-1].Number != 25 {
		t.Errorf("%d writes, the last is %d", len(writes), writes[len(writes)-1].Number)
	}
}

func TestWhoeverInterferesSeesEachWriteBeforeAndAfterAndMayCutItOff(t *testing.T) {
	type moment struct {
		Method string
		Status int
		Done   bool
		Power  PowerState
	}
	var mu sync.Mutex
	var seen []moment
	cut := func(Write, bool) bool { return false }
	f, m := startFleet(t, Options{InMemory: true, Delays: instant, Interfere: func(w Write, done bool) bool {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, moment{w.Method, w.Status, done, w.Power})
		return cut(w, done)
	}}, MachineSpec{Name: "a"})
	reset := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.URL()+pathResetOf("1"), strings.NewReader(`{"ResetType":"On"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth(m.Credentials())
		response, err := f.Client().Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := reset(); err == nil || m.Power() != PowerOff {
		t.Errorf("cut off before: error %v, power %s", err, m.Power())
	}
	cut = func(_ Write, done bool) bool { return !done }
	if err := reset(); err == nil || m.Power() != PowerOn {
		t.Errorf("cut off after: error %v, power %s", err, m.Power())
	}
	cut = func(Write, bool) bool { return true }
	if err := reset(); err != nil {
		t.Error(err)
	}
	var executed []bool
	for _, w := range m.Writes() {
		executed = append(executed, w.Executed)
	}
	want := []moment{{"POST", 0, false, PowerOff}, {"POST", 0, false, PowerOff}, {"POST", 0, true, PowerOff}, {"POST", 0, false, PowerOn}, {"POST", 0, true, PowerOn}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]bool{false, true, true}, executed); diff != "" {
		t.Error(diff)
	}
}
