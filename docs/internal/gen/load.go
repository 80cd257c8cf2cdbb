// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// loadFolder holds what bin/load printed, one file for each size of the fleet.
const loadFolder = "load"

// loadResult is what one run of bin/load measured.
type loadResult struct {
	servers     int
	memoryLimit string
	// figures are the numbers by their keys; one of a phase is "claim.api_writes". What was not measured is absent.
	figures map[string]float64
}

// loadFigure is a row of the table, or the points of a line.
type loadFigure struct {
	label, key string
	// per is the key that the figure is divided by; empty is none.
	per string
	// times is the factor to the unit of the label; 0 is 1.
	times    float64
	decimals int
}

// of is the figure in a result; false where it was not measured.
func (f loadFigure) of(r loadResult) (float64, bool) {
	value, found := r.figures[f.key]
	if f.per != "" {
		value /= r.figures[f.per]
	}
	return value * cmp.Or(f.times, 1), found
}

// phaseCounts are the rows that each phase with servers or claims has.
func phaseCounts(phase, per string) []loadFigure {
	each := " for each " + strings.TrimSuffix(per, "s")
	return []loadFigure{
		{label: "CPU of the manager, s", key: phase + ".manager_cpu_seconds", decimals: 1},
		{label: "CPU of the API server, s", key: phase + ".apiserver_cpu_seconds", decimals: 1},
		{label: "API writes" + each, key: phase + ".api_writes", per: per, decimals: 1},
		{label: "Events" + each, key: phase + ".api_events", per: per, decimals: 1},
		{label: "uncached API reads" + each, key: phase + ".api_reads", per: per, decimals: 1},
		{label: "of those answered with 404", key: phase + ".api_reads_404", per: per, decimals: 1},
		{label: "Redfish requests" + each, key: phase + ".redfish_requests", per: per, decimals: 1},
	}
}

// loadGroup is the rows of one phase.
type loadGroup struct {
	phase string
	rows  []loadFigure
}

func loadTable() []loadGroup {
	return []loadGroup{
		{"onboard", append([]loadFigure{
			{label: "all servers claimable after, s", key: "onboard_seconds", decimals: 1},
		}, phaseCounts("onboard", "servers")...)},
		{"idle", []loadFigure{
			{label: "Redfish requests for each server and hour", key: "idle_redfish_requests_per_server_hour", decimals: 1},
		}},
		{"claim", append([]loadFigure{
			{label: "claims", key: "claims"},
			{label: "all Bound after, s", key: "claims_bound_seconds", decimals: 1},
			{label: "that as a multiple of the API server's CPU", key: "claims_bound_multiple", decimals: 2},
			{label: "CPU of the manager until Bound, ms for each claim", key: "manager_cpu_seconds_per_claim", times: 1000, decimals: 1},
			{label: "all machines on after, s", key: "claims_running_seconds", decimals: 1},
		}, phaseCounts("claim", "claims")...)},
		{"release", append([]loadFigure{
			{label: "all wiped and claimable after, s", key: "release_seconds", decimals: 1},
		}, phaseCounts("release", "claims")...)},
		{"all", []loadFigure{
			{label: "peak memory of the manager, MiB", key: "manager_peak_rss_mib"},
			{label: "log of the manager, MB", key: "log_bytes", times: 1e-6, decimals: 1},
			{label: "conflicts", key: "conflicts"},
			{label: "double bindings", key: "double_binds"},
			{label: "cores of the host", key: "settings.cores"},
		}},
	}
}

// The lines of load.md between which the table stands.
const (
	loadBegin = "<!-- Begin of the table from load/*.json: go generate ./docs -->\n"
	loadEnd   = "<!-- End of the table -->\n"
)

// loadPage is load.md as it is, with the table anew.
func loadPage(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "load.md"))
	if err != nil {
		return "", err
	}
	before, rest, found := strings.Cut(string(text), loadBegin)
	_, after, ends := strings.Cut(rest, loadEnd)
	if !found || !ends {
		return "", errors.New("the lines that mark the table are missing")
	}
	results, err := loadResults(root)
	if err != nil {
		return "", err
	}
	return before + loadBegin + loadRows(results) + loadEnd + after, nil
}

// loadRows is the table: a column for each size of the fleet.
func loadRows(results []loadResult) string {
	var m markdown
	head, limits := []string{"phase", "figure"}, []string{"", "memory limit of the manager"}
	for _, r := range results {
		head = append(head, grouped(r.servers)+" servers")
		limits = append(limits, cmp.Or(r.memoryLimit, "none"))
	}
	var rows [][]string
	for _, group := range loadTable() {
		phase := group.phase
		for _, figure := range group.rows {
			row := []string{phase, figure.label}
			for _, r := range results {
				text := "–"
				if value, found := figure.of(r); found {
					text = strconv.FormatFloat(value, 'f', figure.decimals, 64)
				}
				row = append(row, text)
			}
			rows, phase = append(rows, row), ""
		}
	}
	m.table(head, append(rows, limits))
	return "\n" + m.text() + "\n"
}

// grouped is 10,000 for 10000.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// loadResults reads all results, the smallest fleet first.
func loadResults(root string) ([]loadResult, error) {
	files, err := filepath.Glob(filepath.Join(root, "docs", loadFolder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("docs/%s has no results: run make load N=100 >docs/%s/100.json", loadFolder, loadFolder)
	}
	var results []loadResult
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r, err := parseLoad(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		results = append(results, r)
	}
	slices.SortFunc(results, func(a, b loadResult) int { return cmp.Compare(a.servers, b.servers) })
	return results, nil
}

// parseLoad reads one result. A key that an older driver did not print is an error, and one that is null was not measured.
func parseLoad(text []byte) (loadResult, error) {
	var top map[string]any
	if err := json.Unmarshal(text, &top); err != nil {
		return loadResult{}, err
	}
	r := loadResult{figures: map[string]float64{}}
	known, ran := map[string]bool{}, map[string]bool{"settings": true}
	take := func(prefix string, object map[string]any) {
		for key, value := range object {
			known[prefix+key] = true
			if number, ok := value.(float64); ok {
				r.figures[prefix+key] = number
			}
		}
	}
	take("", top)
	settings, _ := top["settings"].(map[string]any)
	take("settings.", settings)
	r.memoryLimit, _ = settings["memory_limit"].(string)
	phases, _ := top["phases"].([]any)
	for _, one := range phases {
		phase, _ := one.(map[string]any)
		name, _ := phase["name"].(string)
		ran[name] = true
		take(name+".", phase)
	}
	for _, group := range loadTable() {
		for _, figure := range group.rows {
			phase, _, nested := strings.Cut(figure.key, ".")
			if !known[figure.key] && (!nested || ran[phase]) {
				return r, fmt.Errorf("%s is missing: measure anew with make load", figure.key)
			}
		}
	}
	r.servers = int(r.figures["servers"])
	if r.servers < 1 {
		return r, errors.New("servers is missing")
	}
	return r, nil
}
