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

// table reads lines of a code, what is wrong, and the remedy, separated by bars.
func table(severity Severity, lines string) []Code {
	var codes []Code
	for line := range strings.Lines(lines) {
		parts := strings.Split(strings.TrimSpace(line), " | ")
		if len(parts) == 3 {
			codes = append(codes, Code{Code: parts[0], Severity: severity, What: parts[1], Remedy: parts[2]})
		}
	}
	return codes
}
