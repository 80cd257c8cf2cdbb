// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/diag"
)

// The types hold as much of SARIF 2.1.0 as findings need
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html).
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID string `json:"id"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	Level     string          `json:"level"`
	Message   sarifMessage    `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn"`
}

var sarifLevels = map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Info: "note"}

// sarif is the findings in the form that code hosts and editors read.
func (v verdict) sarif() sarifLog {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "metalaw", InformationURI: "https://github.com/metalaw/metalaw", Rules: []sarifRule{}}},
		Results: []sarifResult{}}
	var codes []string
	for _, d := range v.report.Found {
		codes = append(codes, d.Code)
		d = v.placed(d)
		text := d.Message
		if d.Rule != "" {
			text = d.Rule + ": " + text
		}
		if d.Hint != "" {
			text += " (" + d.Hint + ")"
		}
		at := sarifPhysical{Artifact: sarifArtifact{URI: filepath.ToSlash(strings.TrimPrefix(d.File, "./"))}}
		if d.Line > 0 {
			at.Region = &sarifRegion{StartLine: d.Line, StartColumn: max(1, d.Column)}
		}
		run.Results = append(run.Results, sarifResult{RuleID: d.Code, Level: sarifLevels[d.Severity], Message: sarifMessage{text},
			Locations: []sarifLocation{{at}}})
	}
	slices.Sort(codes)
	for _, code := range slices.Compact(codes) {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: code})
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}
