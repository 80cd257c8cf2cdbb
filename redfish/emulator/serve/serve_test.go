// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// lines collects output and tells when a text is there.
type lines struct {
	buf   bytes.Buffer
	want  string
	found chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	had := strings.Contains(l.buf.String(), l.want)
	n, err := l.buf.Write(p)
	if !had && strings.Contains(l.buf.String(), l.want) {
		close(l.found)
	}
	return n, err
}

func TestLatencyIsAddedToEveryAnswer(t *testing.T) {
	for _, c := range []struct {
		latency time.Duration
		want    int
	}{{0, 0}, {100 * time.Millisecond, 1}} {
		fleet, err := build(Options{Machines: 1, Latency: c.latency})
		if err != nil {
			t.Fatal(err)
		}
		faults := fleet.Faults()
		if len(faults) != c.want || (c.want > 0 && faults[0].Fault().Delay != c.latency) {
			t.Errorf("latency %s: %d faults at work", c.latency, len(faults))
		}
	}
}

func TestTheProgramPrintsATableAndWritesManifests(t *testing.T) {
	dir := t.TempDir()
	faults := filepath.Join(dir, "faults.yaml")
	if err := os.WriteFile(faults, []byte("faults:\n- use: ServiceUnavailable\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	manifests, ca := filepath.Join(dir, "endpoints.yaml"), filepath.Join(dir, "ca.pem")
	out := &lines{want: "control interface", found: make(chan struct{})}
	cmd := Command(nil)
	cmd.SetOut(out)
	cmd.SetArgs([]string{
		"--machines", "2", "--addresses", "127.0.0.0/29", "--base-port", "0", "--tls", "--profile", "dell,openbmc", "--seed", "3",
		"--power-delay", "0", "--faults", faults, "--endpoints-out", manifests, "--ca-out", ca, "--control-addr", "127.0.0.1:0",
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	select {
	case <-out.found:
	case err := <-done:
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"machine-000", "machine-001", "dell", "openbmc", "https://127.0.0.1:", "https://127.0.0.2:", "calvin", "0penBmc"} {
		if !strings.Contains(out.buf.String(), want) {
			t.Errorf("the output lacks %s:\n%s", want, out.buf.String())
		}
	}
	got, err := os.ReadFile(manifests)
	if err != nil {
		t.Fatal(err)
	}
	const want = `---
apiVersion: metal.ironcore.dev/v1alpha1
kind: Endpoint
metadata:
  name: machine-000
spec:
  macAddress: "c8:4b:d6:01:da:a5"
  ip: 127.0.0.1
---
apiVersion: metal.ironcore.dev/v1alpha1
kind: Endpoint
metadata:
  name: machine-001
spec:
  macAddress: "d8:c4:97:01:da:b5"
  ip: 127.0.0.2
`
	if string(got) != want {
		t.Errorf("manifests:\n%s", got)
	}
	if pem, err := os.ReadFile(ca); err != nil || !bytes.Contains(pem, []byte("BEGIN CERTIFICATE")) {
		t.Errorf("CA %q, %v", pem, err)
	}
}

func TestTheBootProviderGoesToTheGuest(t *testing.T) {
	cmd := Command(func(url string) (emulator.Guest, error) { return nil, io.ErrNoProgress })
	cmd.SetArgs([]string{"--boot-provider", "http://127.0.0.1:1"})
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
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
		{"DELETE", "/faults", "", 200, "[]"},
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
