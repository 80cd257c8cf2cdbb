// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"slices"
	"strings"
)

// shape is a form that tells a secret. The first group is kept.
type shape struct {
	pattern *regexp.Regexp
	// needs are texts of which one is in each match, in lower case: most texts have none, and an expression takes
	// long to say so.
	needs []string
	// after is what stands behind the hidden part.
	after string
}

// likely says that the shape can be in a text, which is in lower case.
func (s shape) likely(lower string) bool {
	return slices.ContainsFunc(s.needs, func(need string) bool { return strings.Contains(lower, need) })
}

var shapes = []shape{
	// A private key, also one that was cut off.
	{regexp.MustCompile(`(?s)(-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----)` +
		`.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|$)`),
		[]string{"private key"}, ""},
	// The name of a boot medium, which is the right to fetch it with the ignition that it holds.
	{regexp.MustCompile(`(/media/)[A-Za-z0-9_-]{43}`), []string{"/media/"}, ""},
	// What a URL holds by itself.
	{regexp.MustCompile(`(?i)(\bdata:[a-z0-9/+.;=-]*,)[^\s"'<>]+`), []string{"data:"}, ""},
	// User info of a URL, up to the last @ before the path.
	{regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/?#"'<>]*@`), []string{"://"}, "@"},
	// The query and the fragment of a URL.
	{regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://[^\s?#"'<>]*[?#])[^\s"'<>]+`), []string{"://"}, ""},
	{regexp.MustCompile(`(?i)(\b(?:bearer|basic|digest|negotiate)\s+)[A-Za-z0-9._~+/=-]{8,}`),
		[]string{"bearer", "basic", "digest", "negotiate"}, ""},
	// A JSON web token.
	{regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)*`), []string{"eyj"}, ""},
	// Tokens of GitHub, GitLab, Slack, AWS and npm.
	{regexp.MustCompile(`()\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{8,}|` +
		`(?:AKIA|ASIA)[A-Z0-9]{12,}|npm_[A-Za-z0-9]{16,})`),
		[]string{"gh", "glpat-", "xox", "akia", "asia", "npm_"}, ""},
	// A bootstrap token of Kubernetes.
	{regexp.MustCompile(`()\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), []string{"."}, ""},
	// The hash of a password, as crypt(3) writes it.
	{regexp.MustCompile(`()\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|scrypt|argon2id?)\$[^\s"':]+`), []string{"$"}, ""},
}

// keyed is a key with what leads to its value.
var keyed = regexp.MustCompile(`([A-Za-z][\w./-]*)\\*["']?[ \t]*[:=][ \t]*`)

// Text redacts a text by its form.
func (r *Redactor) Text(text string) string {
	lower := strings.ToLower(text)
	for _, s := range shapes {
		if !s.likely(lower) {
			continue
		}
		text = s.pattern.ReplaceAllStringFunc(text, func(found string) string {
			kept := s.pattern.FindStringSubmatch(found)[1]
			hidden := found[len(kept) : len(found)-len(s.after)]
			if strings.HasPrefix(hidden, Hidden) {
				return found
			}
			return kept + r.hide(hidden) + s.after
		})
	}
	if !strings.ContainsAny(text, ":=") {
		return text
	}
	return r.pairs(text)
}

// pairs hides what stands behind the keys in a text.
func (r *Redactor) pairs(text string) string {
	var out strings.Builder
	done := 0
	for _, at := range keyed.FindAllStringSubmatchIndex(text, -1) {
		if at[0] < done || !IsSecret(text[at[2]:at[3]]) {
			continue // it is a part of a value, or what follows may hold another key
		}
		before, inner, after := valueOf(text[at[1]:])
		out.WriteString(text[done : at[1]+len(before)])
		if !isSwitch(inner) {
			inner = r.hide(inner)
		}
		out.WriteString(inner)
		done = at[1] + after
	}
	out.WriteString(text[done:])
	return out.String()
}

// valueOf splits the text behind a key into the opening quote, if there is one, and the value. after is where the value ends. Without
// a quote the value is the rest of the line, and for a block of YAML also the lines that continue it.
func valueOf(text string) (before, inner string, after int) {
	plain := strings.TrimLeft(text, `\`)
	slashes := len(text) - len(plain)
	begins := slashes + 1
	switch {
	case plain != "" && plain[0] == '"':
		after = quoted(text, begins, slashes)
	case plain != "" && plain[0] == '\'':
		if after = strings.IndexAny(text[begins:], "'\n"); after >= 0 {
			after += begins
		}
	default:
		begins = 0
		after = strings.IndexByte(text, '\n')
		for block := text != "" && (text[0] == '|' || text[0] == '>'); block && after >= 0; {
			if block = strings.HasPrefix(text[after:], "\n ") || strings.HasPrefix(text[after:], "\n\t"); !block {
				break
			}
			next := strings.IndexByte(text[after+1:], '\n')
			if next < 0 {
				after = -1
				break
			}
			after += 1 + next
		}
	}
	if after < 0 {
		after = len(text)
	}
	return text[:begins], text[begins:after], after
}

// quoted is where a quoted value ends whose opening quote has so many slashes; -1 where it does not. In JSON that stands in a string a
// quote with fewer ends that string.
func quoted(text string, from, slashes int) int {
	escapes := 0
	for i := from; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			escapes++
			continue
		case text[i] == '"' && slashes == 0 && escapes%2 == 0:
			return i
		case text[i] == '"' && slashes > 0 && escapes <= slashes:
			return i - escapes
		}
		escapes = 0
	}
	return -1
}
