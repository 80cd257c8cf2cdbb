// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"cmp"
	"slices"
	"strings"
)

// Code documents the code of a finding.
type Code struct {
	// Code is what findings carry.
	Code     string
	Severity Severity
	// What is wrong, in one sentence.
	What string
	// Remedy is what to do about it, in one sentence.
	Remedy string
}

// Group is a page's worth of codes.
type Group struct {
	Title string
	// About says where these findings come from, in one sentence.
	About string
	Codes []Code
}

// Groups lists every code that the parsers and checks of a bundle use, by what they are about, each group sorted by code.
func Groups() []Group {
	all := slices.Clone(groups)
	for i := range all {
		all[i].Codes = slices.SortedFunc(slices.Values(all[i].Codes), func(a, b Code) int { return cmp.Compare(a.Code, b.Code) })
	}
	return all
}

// Registered is the documentation of a code; false for one that is not documented.
func Registered(code string) (Code, bool) {
	for _, g := range groups {
		for _, c := range g.Codes {
			if c.Code == code {
				return c, true
			}
		}
	}
	return Code{}, false
}

// table reads records of three lines: a code, what is wrong, and the remedy.
func table(severity Severity, records string) []Code {
	lines := strings.Split(strings.TrimSpace(records), "\n")
	var codes []Code
	for record := range slices.Chunk(lines, 3) {
		codes = append(codes, Code{Code: record[0], Severity: severity, What: strings.TrimSpace(record[1]), Remedy: strings.TrimSpace(record[2])})
	}
	return codes
}
