// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
)

// loadJSON is what bin/load prints for a fleet; claims says whether it was claimed.
func loadJSON(servers int, claims bool) string {
	phase := func(name string) string {
		return fmt.Sprintf(`{"name": %q, "manager_cpu_seconds": 2, "apiserver_cpu_seconds": 4, "api_writes": 100, "api_events": 20,
			"api_reads": 50, "api_reads_404": 10, "redfish_requests": 60}`, name)
	}
	phases, count, figure := phase("onboard"), "0", "null"
	if claims {
		phases, count, figure = phases+","+phase("claim")+","+phase("release"), "5", "0.5"
	}
	return strings.NewReplacer("SERVERS", fmt.Sprint(servers), "COUNT", count, "FIGURE", figure, "PHASES", phases).Replace(`{"servers": SERVERS, "onboard_seconds": 3,
		"idle_redfish_requests_per_server_hour": null, "claims": COUNT, "claims_bound_seconds": FIGURE, "claims_bound_multiple": FIGURE,
		"manager_cpu_seconds_per_claim": FIGURE, "claims_running_seconds": FIGURE, "release_seconds": FIGURE, "manager_peak_rss_mib": 99.6,
		"log_bytes": 200000, "conflicts": 0, "double_binds": 0, "settings": {"cores": 2, "memory_limit": "460MiB"}, "phases": [PHASES]}`)
}

func parsedLoad(t *testing.T, text string) loadResult {
	t.Helper()
	r, err := parseLoad([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAResultThatLacksAKeyIsAnError(t *testing.T) {
	for name, c := range map[string]struct{ key, want string }{
		"of the run":  {`"claims_bound_multiple"`, "claims_bound_multiple is missing: measure anew with make load"},
		"of a phase":  {`"api_reads_404"`, "onboard.api_reads_404 is missing: measure anew with make load"},
		"of settings": {`"cores"`, "settings.cores is missing: measure anew with make load"},
		"the servers": {`"servers"`, "servers is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseLoad([]byte(strings.ReplaceAll(loadJSON(10, true), c.key, `"other"`))); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestTheTableOfLoadLeavesGapsForWhatWasNotMeasured(t *testing.T) {
	table := loadRows([]loadResult{parsedLoad(t, loadJSON(10, true)), parsedLoad(t, loadJSON(5000, false))})
	for _, row := range []string{
		"| phase | figure | 10 servers | 5,000 servers |",
		"| onboard | all servers claimable after, s | 3.0 | 3.0 |",
		"|  | API writes for each server | 10.0 | 0.0 |",
		"| idle | Redfish requests for each server and hour | – | – |",
		"| claim | claims | 5 | 0 |",
		"|  | all Bound after, s | 0.5 | – |",
		"|  | CPU of the manager until Bound, ms for each claim | 500.0 | – |",
		"|  | uncached API reads for each claim | 10.0 | – |",
		"| all | peak memory of the manager, MiB | 100 | 100 |",
		"|  | memory limit of the manager | 460MiB | 460MiB |",
	} {
		if !strings.Contains(table, row+"\n") {
			t.Errorf("no row %s in\n%s", row, table)
		}
	}
}

func TestALineOfTheLoadChartBreaksAtAGap(t *testing.T) {
	with, without := func(n int) loadResult { return parsedLoad(t, loadJSON(n, true)) }, parsedLoad(t, loadJSON(100, false))
	for name, c := range map[string]struct {
		results        []loadResult
		lines, circles int
	}{
		"one fleet has points alone":            {[]loadResult{with(10)}, 0, 16},
		"three fleets are joined":               {[]loadResult{with(10), with(50), with(1000)}, 16, 48},
		"a gap at the end ends the line":        {[]loadResult{with(10), with(50), without}, 16, 38},
		"a gap in the middle leaves two points": {[]loadResult{with(10), without, with(1000)}, 6, 38},
	} {
		t.Run(name, func(t *testing.T) {
			picture := drawLoad(c.results)
			lines, circles := strings.Count(picture, "<polyline"), strings.Count(picture, "<circle")-len(loadWork)
			if lines != c.lines || circles != c.circles {
				t.Errorf("%d lines and %d circles; want %d and %d", lines, circles, c.lines, c.circles)
			}
		})
	}
}

func TestFiguresAtTheEndsOfLinesDoNotCover(t *testing.T) {
	got := fmt.Sprint(spread([]mark{{170, 50, "a"}, {170, 55, "b"}, {100, 52, "c"}, {170, 90, "d"}}))
	if want := "[{100 52 c} {170 90 d} {170 55 b} {170 43 a}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestThousandsAreGrouped(t *testing.T) {
	for n, want := range map[int]string{100: "100", 1000: "1,000", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
