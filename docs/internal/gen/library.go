// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/library"
)

func libraryPage(string) (string, error) {
	all, err := library.All()
	if err != nil {
		return "", err
	}
	m := newPage("The policy library", "`policies/library`")
	m.paragraph("Policies that a bundle can take over, each by `metalaw policy add DIR NAME`. It writes the policy's Rego and its tests as " +
		"files of the bundle, and the " +
		"rule of `selection.rego` or `admission.rego` that uses them. From then on they are the bundle's own. They are reviewed with it, " +
		"and they are in its digest and its revision. An upgrade of metalaw does not change them. " +
		"[Bundles](../bundles.md#policies-from-the-library) shows how.")
	tableOf(m, []string{"policy", "what it does", "part of"}, all, func(p library.Policy) []string {
		return []string{"[" + p.Name + "](#" + p.Name + ")", p.Summary, part(p)}
	})
	healthy, failing, err := mostPoints()
	if err != nil {
		return "", err
	}
	m.paragraph(fmt.Sprintf("All of them are [evaluated natively](../bundles.md#choosing-servers) in selection. Points that a policy gives add up "+
		"with those of your own rules and of other "+
		"policies: a parameter `weight` says how they compare. The built-in bundles' own score has at most %v points, and for a server whose "+
		"BMC reports a warning at most %v. The library's policies give such a server none, so that it comes last whatever they weigh.",
		healthy, failing))
	for _, p := range all {
		libraryPolicy(m, p)
	}
	return m.text(), nil
}

// mostPoints are the highest scores that the default bundle gives to servers: to any, and to one whose BMC reports a warning.
func mostPoints() (healthy, failing float64, err error) {
	b, err := policies.Default()
	if err != nil {
		return 0, 0, err
	}
	const days, empty = 100, "empty"
	fleet := selection.Fleet{Now: days * 24 * 60 * 60, TotalByRack: map[string]int64{empty: 1, "full": 1}, ClaimedByRack: map[string]int64{"full": 1}}
	for _, health := range []string{"OK", "Unknown", "Warning"} {
		var servers []*selection.PreparedCandidate
		for memory := int64(0); memory <= 4096; memory += 64 {
			for _, rack := range []string{"", "full", empty} {
				for _, since := range []int64{0, fleet.Now} {
					for gpus := range int64(2) {
						servers = append(servers, selection.NewCandidate(selection.Candidate{Name: "s", Health: health, MemoryGiB: memory, Rack: rack,
							AvailableSince: since, GPUs: gpus}))
					}
				}
			}
		}
		result, err := b.Selection.Rank(context.Background(), selection.Claim{}, servers, fleet, 1)
		if err != nil {
			return 0, 0, err
		}
		healthy = max(healthy, result.Ranked[0].Score)
		if health == "Warning" {
			failing = result.Ranked[0].Score
		}
	}
	return healthy, failing, nil
}

// part is the part of a bundle that a policy belongs to.
func part(p library.Policy) string {
	var parts []string
	if p.Score != "" {
		parts = append(parts, "`score`")
	}
	if p.Selection != "" {
		parts = append(parts, "`reject`")
	}
	if p.Admission != "" {
		parts = append(parts, "`deny` of admission")
	}
	return strings.Join(parts, ", ")
}

func libraryPolicy(m *markdown, p library.Policy) {
	m.heading(2, "%s", p.Name)
	m.paragraph(p.Does)
	tableOf(m, []string{"parameter", "default", "meaning"}, p.Parameters, func(one library.Parameter) []string {
		return []string{code(one.Name), code(one.Default), one.Doc}
	})
	tableOf(m, []string{"what it reads", "meaning"}, p.Reads, func(name string) []string {
		return []string{code(name), inputDoc(name)}
	})
	m.paragraph("It is used by")
	if p.Score != "" {
		m.line("```rego\n# selection.rego\nscore := ... + %s\n```\n", p.Score)
	}
	if p.Selection != "" {
		m.line("```rego\n# selection.rego\n%s```\n", p.Selection)
	}
	if p.Admission != "" {
		m.line("```rego\n# admission.rego\n%s```\n", p.Admission)
	}
	m.paragraph("For example:")
	m.line("```yaml\n%s```\n", p.Example)
}

// inputDoc is what the schema of the input says of a part of it.
func inputDoc(name string) string {
	for _, schema := range []map[string]any{selection.Schema(), admission.Schema()} {
		found := schema
		for _, key := range strings.Split(strings.TrimPrefix(name, "input."), ".") {
			properties, _ := found["properties"].(map[string]any)
			if found, _ = properties[key].(map[string]any); found == nil {
				break
			}
		}
		if doc, _ := found["description"].(string); doc != "" {
			return doc
		}
	}
	if strings.HasPrefix(name, "input.object.metadata.namespace") {
		return "Namespace of the object."
	}
	return ""
}
