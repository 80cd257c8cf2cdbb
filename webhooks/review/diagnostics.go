// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/engine/diag"
)

// causeDiagnostic is the type of a cause that is one diagnostic of a bundle. Its field is the place, file:line:column, so that
// it reads like that of a compiler wherever field and message are shown: kubectl gives each cause a line.
const causeDiagnostic metav1.CauseType = "BundleDiagnostic"

// bounds is how much is said of what may be very much.
type bounds struct {
	// lines is how many diagnostics, length how many characters of each, and total how many of all.
	lines, length, total int
	// more says how to see what was left out.
	more string
}

var (
	// inRefusal keeps a Status well below what a terminal can show and the audit log can store.
	inRefusal = bounds{lines: 100, length: 600, total: 24 << 10, more: seeAll}
	// inWarnings keeps to what the API server passes on: 4096 characters of warnings in all, beyond which it cuts each to 256.
	inWarnings = bounds{lines: 12, length: 250, total: 3000, more: seeAll}
	// InPlacement keeps to what a user mends at one time: an annotation is short.
	InPlacement = bounds{lines: 20, length: 600, total: 8 << 10, more: "mend these first"}
)

const seeAll = "run metalaw policy verify -f on the files to see all"

// maxLogged is how many characters of a refusal go to the log.
const maxLogged = 2048

// of are diagnostics, one line each, errors first; what is beyond the bounds is counted.
func (b bounds) of(list diag.List) []string {
	rank := map[diag.Severity]int{diag.Error: 0, diag.Warning: 1, diag.Info: 2}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y diag.Diagnostic) int { return rank[x.Severity] - rank[y.Severity] })
	var lines []string
	total := 0
	for i, d := range list {
		line := diag.ShortenedCharacters(oneLine(d.String()), b.length)
		total += utf8.RuneCountInString(line)
		if i == b.lines || total > b.total {
			return append(lines, fmt.Sprintf("and %d more: %s", len(list)-i, b.more))
		}
		lines = append(lines, line)
	}
	return lines
}

// oneLine leaves out what would break a line, or a header.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, unicode.IsControl), " ")
}

// Counted is how many there are of each severity that matters, such as "2 errors, 1 warning".
func Counted(list diag.List) string {
	var parts []string
	for _, severity := range []diag.Severity{diag.Error, diag.Warning} {
		n := 0
		for _, d := range list {
			if d.Severity == severity {
				n++
			}
		}
		switch {
		case n == 1:
			parts = append(parts, fmt.Sprintf("1 %s", severity))
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, severity))
		}
	}
	return strings.Join(parts, ", ")
}

// DenyDiagnostics refuses with everything that was found.
func (f *Findings) DenyDiagnostics(summary string, list diag.List) {
	f.DenyAt("data", summary, notable(list), inRefusal)
}

// DenyAt refuses what a field holds.
func (f *Findings) DenyAt(path, summary string, list diag.List, within bounds) {
	f.Denials = append(f.Denials, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: path, Message: summary + ": " + Counted(list)})
	for _, line := range within.of(list) {
		place, rest, _ := strings.Cut(line, ": ")
		f.Denials = append(f.Denials, metav1.StatusCause{Type: causeDiagnostic, Field: place, Message: rest})
	}
}

// WarnDiagnostics tells everything that was found.
func (f *Findings) WarnDiagnostics(list diag.List) {
	f.Warnings = append(f.Warnings, inWarnings.of(notable(list))...)
}

// notable leaves out what is merely worth knowing: that is for the author at a desk, who asks metalaw policy verify.
func notable(list diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(list), func(d diag.Diagnostic) bool { return d.Severity == diag.Info })
}
