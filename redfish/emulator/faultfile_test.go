// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAFaultFileSaysWhatGoesWrong(t *testing.T) {
	got, err := ParseFaults([]byte(`
faults:
- name: slow-start
  machine: node-*
  method: GET
  path: /redfish/v1/Systems/*
  nth: 3
  delay: 2s
  status: 503
  headers: {Retry-After: "5"}
- use: PowerReadsNull
  machine: node-1
  probability: 0.25
- use: ResetAsTask
  task: {takes: 1m, monitorVanishes: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Fault{
		{Name: "slow-start", Machine: "node-*", Method: "GET", Path: "/redfish/v1/Systems/*", After: 2, Count: 1,
			Action: Action{Delay: 2 * time.Second, Status: 503, Header: map[string]string{"Retry-After": "5"}}},
		{Name: "PowerReadsNull", Machine: "node-1", Method: "GET", Path: "/redfish/v1/Systems/*", Probability: 0.25,
			Action: Action{Set: map[string]any{"PowerState": nil}}},
		{Name: "ResetAsTask", Method: "POST", Path: pathReset,
			Action: Action{AsTask: &TaskScript{Takes: time.Minute, MonitorVanishes: true}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestABadFaultFileIsRefusedWithTheLine(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"a field that does not exist":  {"faults:\n- colour: red\n", "line 2: field colour not found"},
		"a name not in the catalogue":  {"faults:\n- use: Earthquake\n", `line 2: use: "Earthquake" is not in the catalogue`},
		"no action":                    {"faults:\n- path: /x\n", "line 2: the fault does nothing"},
		"a status that is none":        {"faults:\n- status: 99\n", "line 2: status: use 200 to 599"},
		"a probability above one":      {"faults:\n- status: 500\n  probability: 2\n", "line 2: probability"},
		"the second error as well":     {"faults:\n- status: 99\n- drop: true\n  nth: 0\n", "line 3: nth"},
		"a method that is none":        {"faults:\n- drop: true\n  method: FETCH\n", `line 2: method: "FETCH" is none`},
		"a body without a status":      {"faults:\n- drop: true\n  body: x\n", "line 2: body"},
		"a duration without a unit":    {"faults:\n- delay: soon\n", "line 2: cannot unmarshal"},
		"two documents":                {"faults: []\n---\nfaults: []\n", "more than one YAML document"},
		"no YAML at all":               {"faults: [", "fault file: yaml"},
		"a list instead of a mapping":  {"- drop: true\n", "line 1: cannot unmarshal"},
		"more than a file should have": {strings.Repeat("#", maxFaultFile+1), "split it"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseFaults([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %s", err, c.want)
			}
		})
	}
}

func TestAnEmptyFaultFileHasNoFaults(t *testing.T) {
	for _, file := range []string{"", "# nothing\n", "faults:\n", "faults: []\n"} {
		if faults, err := ParseFaults([]byte(file)); err != nil || len(faults) != 0 {
			t.Errorf("%q: %v, %v", file, faults, err)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add([]byte("faults:\n- use: Dropped\n  path: '/**/*x*'\n  machine: '*'\n"))
	f.Add([]byte("faults:\n- {status: 503, body: '{path}', set: {a/0/b: [1, {c: ~}]}, headers: {a: ''}}\n"))
	f.Add([]byte("faults: &a\n- *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		faults, err := ParseFaults(data)
		if err != nil {
			return
		}
		// What was accepted must be usable.
		set := newFaultSet(1)
		for _, fault := range faults {
			i := set.add(fault)
			if i.path != nil {
				i.path.MatchString("/redfish/v1/Systems/1")
			}
			r := reply{header: map[string][]string{}, body: []byte(`{"a":[{"b":1}]}`)}
			r.spoil(&fault.Action, "/redfish/v1/Systems/1")
		}
	})
}
