// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/engine/lifecycle/verify"
)

// The types hold as much of SARIF 2.1.0 as findings need
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html).
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver sarifDriver `json:"driver"`
	} `json:"tool"`
	Results []sarifResult `json:"results"`
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
	// CodeFlows are the moves by which a finding shows: code hosts show them as a path, beside the message.
	CodeFlows  []sarifCodeFlow  `json:"codeFlows,omitempty"`
	Properties *sarifProperties `json:"properties,omitempty"`
}

type sarifCodeFlow struct {
	ThreadFlows []sarifThreadFlow `json:"threadFlows"`
}

type sarifThreadFlow struct {
	Locations []sarifStep `json:"locations"`
}

type sarifStep struct {
	Location sarifLocation `json:"location"`
}

// sarifProperties is what SARIF has no name for.
type sarifProperties struct {
	// Counterexample is the facts by which the finding shows and what is decided on them, as an entry of scenarios.yaml.
	Counterexample string `json:"counterexample"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
	Message  *sarifMessage `json:"message,omitempty"`
}

type sarifPhysical struct {
	Artifact struct {
		URI string `json:"uri"`
	} `json:"artifactLocation"`
	Region *sarifRegion `json:"region,omitempty"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn"`
}

var sarifLevels = map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Info: "note"}

// sarif is the findings in the form that code hosts and editors read.
func (v verdict) sarif() sarifLog {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "metalaw", InformationURI: "https://github.com/metalaw/metalaw", Rules: []sarifRule{}}
	var codes []string
	for _, d := range v.report.Found {
		codes = append(codes, d.Code)
		text := v.Placed(d).Message
		if d.Rule != "" {
			text = d.Rule + ": " + text
		}
		if d.Hint != "" {
			text += " (" + d.Hint + ")"
		}
		result := sarifResult{RuleID: d.Code, Level: sarifLevels[d.Severity],
			Locations: []sarifLocation{{Physical: v.physical(d.File, d.Line, d.Column)}}}
		if x := v.counterexample(d); x != nil {
			if d.Severity != diag.Info {
				text += ". For example: " + x.String()
			}
			result.CodeFlows = []sarifCodeFlow{v.codeFlow(d, x)}
			result.Properties = &sarifProperties{x.Scenario(d.Code + ": " + d.Message)}
		}
		result.Message = sarifMessage{text}
		run.Results = append(run.Results, result)
	}
	slices.Sort(codes)
	for _, code := range slices.Compact(codes) {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: code})
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

// physical is a place in a file of the bundle, in what was read.
func (v verdict) physical(file string, line, column int) sarifPhysical {
	file, line, column = v.Place(file, line, column)
	at := sarifPhysical{}
	at.Artifact.URI = uriReference(file)
	if line > 0 {
		at.Region = &sarifRegion{StartLine: line, StartColumn: max(1, column)}
	}
	return at
}

// uriReference is the path of a file as a URI reference: with what such a one cannot hold percent-encoded, and not taken for one with a
// scheme.
func uriReference(file string) string {
	path := url.URL{Path: filepath.ToSlash(strings.TrimPrefix(file, "./"))}
	return path.String()
}

// codeFlow is the way to a finding: each move at its rule, and last the facts at the finding's own place.
func (v verdict) codeFlow(d diag.Diagnostic, x *verify.Counterexample) sarifCodeFlow {
	var flow sarifThreadFlow
	add := func(at sarifPhysical, text string) {
		flow.Locations = append(flow.Locations, sarifStep{sarifLocation{at, &sarifMessage{text}}})
	}
	places := lifecycle.Places(v.report.Files[bundle.LifecycleFile])
	moves := func(steps []verify.Step) {
		for _, s := range steps {
			at := v.physical(bundle.LifecycleFile, 0, 0)
			if i := slices.IndexFunc(places, func(p lifecycle.RulePlace) bool { return p.Rule == s.Rule }); i >= 0 {
				at = v.physical(bundle.LifecycleFile, places[i].Line, places[i].Column)
			}
			add(at, fmt.Sprintf("%s -%s-> %s", s.From, s.Rule, s.To))
		}
	}
	moves(x.Path)
	facts := *x
	facts.Path = nil
	add(v.physical(d.File, d.Line, d.Column), facts.String())
	moves(x.Cycle)
	return sarifCodeFlow{[]sarifThreadFlow{flow}}
}
