// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// moment is a sample a number of seconds into the run.
func moment(second int, change func(*sampleOf)) sampleOf {
	s := sampleOf{at: time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)}
	if change != nil {
		change(&s)
	}
	return s
}

// onboarded is the sheet of an onboarding of two servers that took 3 s.
func onboarded() sheet {
	p := phase{name: phaseOnboard, per: share{"server", 2}, took: 3 * time.Second, before: moment(0, nil),
		after: moment(5, func(s *sampleOf) {
			s.manager = processCost{CPUSeconds: 1.25, PeakRSS: 64 << 20}
			s.api.CPUSeconds, s.logSize = 4, 900
		})}
	return sheet{
		phase:   p,
		Redfish: requests{{"GET", "/redfish/v1"}: 2, {"POST", "/redfish/v1/Sessions"}: 4},
		Audited: map[audited]int{
			{userManager, "patch", "servers.metal.ironcore.dev", "status", 200, ""}:           10,
			{userManager, "patch", "servers.metal.ironcore.dev", "status", 409, "Conflict"}:   1,
			{userManager, "create", "events.events.k8s.io", "", 201, ""}:                      3,
			{userManager, "update", "leases.coordination.k8s.io", "", 200, ""}:                5,
			{"driver", "create", "endpoints.metal.ironcore.dev", "", 201, ""}:                 2,
			{userManager, "get", "bmcs.metal.ironcore.dev", "", 200, ""}:                      4,
			{userManager, "get", "serverinventories.policy.metalaw.dev", "", 404, "NotFound"}: 2,
			{userManager, "list", "servers.metal.ironcore.dev", "", 200, ""}:                  1,
			{userManager, "get", "leases.coordination.k8s.io", "", 404, "NotFound"}:           1,
		},
		Calls: apiRequests{{"LIST", "servers.metal.ironcore.dev", "", "200"}: 2},
	}
}

func TestOnlyTheManagersRequestsCount(t *testing.T) {
	s := onboarded()
	if writes, events, conflicts := s.of(classWrite), s.of(classEvent), s.conflicts(); writes != 11 || events != 3 || conflicts != 1 {
		t.Errorf("%d writes, %d events, %d conflicts; want 11, 3, 1", writes, events, conflicts)
	}
	if reads, absent := s.of(classRead), s.absent(); reads != 7 || absent != 2 {
		t.Errorf("%d reads, %d of them absent; want 7, 2", reads, absent)
	}
}

func TestAnInventoryNamesEveryRequest(t *testing.T) {
	const want = `# Every request, by phase

## onboard: 3.0 s, 2 servers

### Redfish requests, as the BMCs received them

| method | path | count | per server |
| --- | --- | --- | --- |
| POST | /redfish/v1/Sessions | 4 | 2.00 |
| GET | /redfish/v1 | 2 | 1.00 |
| all |  | 6 | 3.00 |

### API writes, from the audit log

| user | verb | resource | subresource | answer | count | per server |
| --- | --- | --- | --- | --- | --- | --- |
| manager | patch | servers.metal.ironcore.dev | status | 200 | 10 | 5.00 |
| manager | update | leases.coordination.k8s.io |  | 200 | 5 | 2.50 |
| manager | create | events.events.k8s.io |  | 201 | 3 | 1.50 |
| driver | create | endpoints.metal.ironcore.dev |  | 201 | 2 | 1.00 |
| manager | patch | servers.metal.ironcore.dev | status | 409 Conflict | 1 | 0.50 |
| all |  |  |  |  | 21 | 10.50 |

### API reads of the manager, from the audit log

| user | verb | resource | subresource | answer | count | per server |
| --- | --- | --- | --- | --- | --- | --- |
| manager | get | bmcs.metal.ironcore.dev |  | 200 | 4 | 2.00 |
| manager | get | serverinventories.policy.metalaw.dev |  | 404 NotFound | 2 | 1.00 |
| manager | get | leases.coordination.k8s.io |  | 404 NotFound | 1 | 0.50 |
| manager | list | servers.metal.ironcore.dev |  | 200 | 1 | 0.50 |
| all |  |  |  |  | 8 | 4.00 |

### All API requests of all users, from the API server's metrics

| verb | resource | subresource | code | count | per server |
| --- | --- | --- | --- | --- | --- |
| LIST | servers.metal.ironcore.dev |  | 200 | 2 | 1.00 |
| all |  |  |  | 2 | 1.00 |
`
	if got := render([]sheet{onboarded()}); got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestAnEmptyTableSaysSo(t *testing.T) {
	if got := render([]sheet{{phase: phase{name: phaseIdle, per: share{"server", 2}}}}); strings.Count(got, "\nNone.\n") != 4 {
		t.Errorf("got:\n%s", got)
	}
}

func TestRedfishRequestsSinceAnEarlierCount(t *testing.T) {
	root, system := request{"GET", "/redfish/v1"}, request{"GET", "/redfish/v1/Systems/{system}"}
	got := requests{root: 2, system: 9}.minus(requests{root: 2, system: 4})
	if want := (requests{system: 5}); !maps.Equal(got, want) || got.total() != 5 {
		t.Errorf("got %v, want %v", got, want)
	}
}

// whole is a run of all four phases.
func whole() (figures, []sheet) {
	onboard := onboarded()
	idle := sheet{
		phase:   phase{name: phaseIdle, took: 100 * time.Second, before: onboard.phase.after, after: moment(105, func(s *sampleOf) { *s = with(s, onboard.phase.after) })},
		Redfish: requests{{"GET", "/redfish/v1/Systems/{system}"}: 4},
	}
	claim := sheet{
		phase:   phase{name: phaseClaim, took: 2 * time.Second, before: idle.phase.after, after: moment(110, func(s *sampleOf) { *s = with(s, idle.phase.after) })},
		Audited: map[audited]int{{userManager, "get", "servers.metal.ironcore.dev", "", 200, ""}: 5},
	}
	release := sheet{
		phase: phase{name: phaseRelease, took: 1500 * time.Millisecond, before: claim.phase.after,
			after: moment(114, func(s *sampleOf) { *s = with(s, claim.phase.after); s.manager.PeakRSS, s.logSize = 80<<20, 1000 })},
		Audited: map[audited]int{{userManager, "patch", "servers.metal.ironcore.dev", "", 409, "Conflict"}: 2},
	}
	f := figures{bound: 500 * time.Millisecond, boundCPU: 0.02, boundAPICPU: 0.8}
	sheets := []sheet{onboard, idle, claim, release}
	for i := range sheets {
		f.phases = append(f.phases, sheets[i].phase)
	}
	return f, sheets
}

// with is a sample with the counters of an earlier one.
func with(s *sampleOf, earlier sampleOf) sampleOf {
	earlier.at = s.at
	return earlier
}

func TestTheReportHasEveryKey(t *testing.T) {
	f, sheets := whole()
	text, err := json.Marshal(summarize(settings{Servers: 2, Claims: 1, Manager: "metalaw", Cores: 2}, f, sheets))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"servers": 2., "onboard_seconds": 3., "manager_cpu_seconds": 1.25, "manager_peak_rss_mib": 80., "apiserver_cpu_seconds": 4.,
		"redfish_requests_per_server": 3., "api_writes_per_server": 5.5, "api_events_per_server": 1.5,
		"api_reads_per_server": 3.5, "api_reads_404_per_server": 1., "api_reads_per_claim": 5.,
		"apiserver_cpu_seconds_until_bound": 0.8, "claims_bound_multiple": 1.25,
		"idle_redfish_requests_per_server_hour": 72., "idle_window_seconds": 100.,
		"claims": 1., "claims_bound_seconds": 0.5, "claims_running_seconds": 2., "manager_cpu_seconds_per_claim": 0.02,
		"release_seconds": 1.5, "conflicts": 3., "double_binds": 0., "log_bytes": 1000.,
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: got %v, want %v", key, got[key], value)
		}
	}
	keys := slices.Sorted(maps.Keys(got))
	if expected := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(want)), "maintenance", "phases", "settings"))); !slices.Equal(keys, expected) {
		t.Errorf("keys %q, want %q", keys, expected)
	}
}

func TestWhatWasNotMeasuredIsNull(t *testing.T) {
	s := onboarded()
	text, err := json.Marshal(summarize(settings{Servers: 2}, figures{phases: []phase{s.phase}}, []sheet{s}))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"idle_redfish_requests_per_server_hour", "claims_bound_seconds", "claims_running_seconds", "claims_bound_multiple", "apiserver_cpu_seconds_until_bound", "api_reads_per_claim", "release_seconds", "maintenance"} {
		if !strings.Contains(string(text), `"`+key+`":null`) {
			t.Errorf("%s is not null in %s", key, text)
		}
	}
}
