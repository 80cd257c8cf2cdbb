// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"reflect"
	"strings"
	"testing"
)

func TestASampleIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want sample
	}{
		"without labels":            {"up 1", sample{"up", map[string]string{}, 1}},
		"with labels":               {`r{verb="GET",code="200"} 12`, sample{"r", map[string]string{"verb": "GET", "code": "200"}, 12}},
		"with empty braces":         {"r{} 2.5e+06", sample{"r", map[string]string{}, 2500000}},
		"with a time":               {"up 1 1700000000000", sample{"up", map[string]string{}, 1}},
		"with a comma at the end":   {`r{a="b",} 3`, sample{"r", map[string]string{"a": "b"}, 3}},
		"with escapes in a label":   {`r{a="x\"}\\\n"} 3`, sample{"r", map[string]string{"a": "x\"}\\\n"}, 3}},
		"with a brace in a label":   {`r{a="{},"} 3`, sample{"r", map[string]string{"a": "{},"}, 3}},
		"with a label that is gone": {`r{a=""} 3`, sample{"r", map[string]string{"a": ""}, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseSample(c.line); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestWhatIsNoSampleIsRefused(t *testing.T) {
	for name, line := range map[string]string{
		"nothing": "", "a name alone": "up", "no name": "{} 1", "a word for a value": "up yes", "an open brace": `r{a="b" 1`,
		"an open quote": `r{a="b} 1`, "a label without quotes": "r{a=b} 1", "too many fields": "up 1 2 3",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseSample(line); err == nil {
				t.Errorf("got %+v, want an error", got)
			}
		})
	}
}

func TestMetricsOfTheAPIServer(t *testing.T) {
	const text = `# HELP apiserver_request_total Counter
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="metal.ironcore.dev",resource="servers",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 7
apiserver_request_total{code="200",component="apiserver",dry_run="All",group="metal.ironcore.dev",resource="servers",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 1
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="secrets",scope="resource",subresource="",verb="POST",version="v1"} 2
apiserver_request_terminations_total{code="504"} 3
process_cpu_seconds_total 12.5
`
	got, err := readAPIMetrics(strings.NewReader(text))
	want := apiRequests{
		{"PATCH", "servers.metal.ironcore.dev", "status", "200"}: 8,
		{"POST", "secrets", "", "201"}:                           2,
	}
	if err != nil || got.CPUSeconds != 12.5 || !maps.Equal(got.Requests, want) {
		t.Errorf("got %+v, %v; want %+v and 12.5 s", got, err, want)
	}
	if _, err := readAPIMetrics(strings.NewReader("up 1\n")); err == nil {
		t.Error("metrics without CPU time were taken")
	}
}

func TestRequestsSinceAnEarlierReading(t *testing.T) {
	get, patch := apiRequest{Verb: "GET"}, apiRequest{Verb: "PATCH"}
	got := apiRequests{get: 5, patch: 3}.minus(apiRequests{get: 5, patch: 1})
	if want := (apiRequests{patch: 2}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzParseSample(f *testing.F) {
	for _, line := range []string{"up 1", `r{verb="GET",code="200"} 12`, `r{a="x\"}\\\n"} 3 1700000000000`, `r{a="b} 1`, "r{", `{="} 1`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := parseSample(line)
		if err == nil && got.name == "" {
			t.Errorf("%q was read as a sample without a name", line)
		}
	})
}
