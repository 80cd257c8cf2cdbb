// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/redfish/emulator"
)

func TestLatencyIsAddedToEveryAnswer(t *testing.T) {
	for _, c := range []struct {
		latency time.Duration
		want    int
	}{{0, 0}, {100 * time.Millisecond, 1}} {
		faults := build(Options{Machines: 1, Latency: c.latency}).Faults()
		if len(faults) != c.want || (c.want > 0 && faults[0].Fault().Delay != c.latency) {
			t.Errorf("latency %s: %d faults at work", c.latency, len(faults))
		}
	}
}

func TestTheControlInterfaceLooksIntoTheFleetAndLetsThingsGoWrong(t *testing.T) {
	fleet := emulator.New(emulator.Options{InMemory: true, Delays: emulator.Delays{Power: -1, Boot: -1}})
	m := fleet.Add(emulator.MachineSpec{Name: "a"})
	if err := fleet.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()
	handler := Control(fleet)
	for _, step := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/machines", "", 200, `"name": "a"`},
		{"GET", "/machines/a", "", 200, `"power": "Off"`},
		{"GET", "/machines/b", "", 404, "machine b does not exist"},
		{"POST", "/machines/a/power", `{"power":"On"}`, 200, `"running": "Hdd"`},
		{"POST", "/machines/a/power", `{"power":"Maybe"}`, 400, "use On or Off"},
		{"POST", "/machines/a/power", `{"colour":"red"}`, 400, "colour"},
		{"POST", "/machines/a/reboot", "", 200, `"boots": 2`},
		{"POST", "/machines/a/password", `{"password":"new"}`, 200, `"password": "new"`},
		{"POST", "/machines/a/password", `{}`, 400, "empty"},
		{"POST", "/machines/a/identity", `{"serialNumber":"S1"}`, 200, `"serialNumber": "S1"`},
		{"POST", "/machines/a/drives/nvme0n1", `{"contents":"data"}`, 200, `"contents": "data"`},
		{"POST", "/machines/a/drives/sda", `{"contents":"data"}`, 404, "drive sda"},
		{"POST", "/machines/a/reachability", `{"reachability":"Silent"}`, 200, ""},
		{"POST", "/machines/a/reachability", `{"reachability":"Gone"}`, 400, "unknown"},
		{"POST", "/machines/a/reachability", `{"reachability":"Reachable"}`, 200, ""},
		{"POST", "/machines/a/troubles/LockedOut", "", 200, `"lockedOut": true`},
		{"POST", "/machines/a/troubles/LockedOut", "", 400, "DELETE it first"},
		{"DELETE", "/machines/a/troubles/LockedOut", "", 200, `"lockedOut": false`},
		{"DELETE", "/machines/a/troubles/LockedOut", "", 404, "does not exist"},
		{"POST", "/machines/a/troubles/Nonsense", "", 404, "trouble Nonsense"},
		{"POST", "/faults", "faults:\n- use: ServiceUnavailable\n", 200, `"name": "ServiceUnavailable"`},
		{"POST", "/faults", "faults:\n- status: 1\n", 400, "line 2"},
		{"POST", "/faults", "faults:\n- use: ServiceUnavailable\n  machine: b\n", 404, "machine b does not exist"},
		{"POST", "/faults", "faults:\n- use: ServiceUnavailable\n  machine: b*\n", 404, "machine b* does not exist"},
		{"POST", "/faults", "faults:\n- use: ServiceUnavailable\n  machine: a*\n", 200, `"name": "ServiceUnavailable"`},
		{"DELETE", "/faults", "", 200, "[]"},
		{"DELETE", "/machines", "", 404, "DELETE /machines does not exist"},
		{"GET", "/nonsense", "", 404, "GET /nonsense does not exist"},
		{"GET", "/catalogue", "", 200, `"BMCRestart"`},
		{"GET", "/writes?machine=a&since=0", "", 200, "[]"},
		{"GET", "/writes?since=x", "", 400, "not a number"},
		{"GET", "/requests", "", 200, "[]"},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(step.method, step.path, strings.NewReader(step.body)))
		if w.Code != step.status || !strings.Contains(w.Body.String(), step.says) || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s %s: %d %s", step.method, step.path, step.body, w.Code, w.Body)
		}
	}
	resp, err := fleet.Client().Get(m.URL() + "/redfish/v1/")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the BMC is gone: %v", err)
	}
	_ = resp.Body.Close()
}
