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
	// needs are texts of which one is in each match, in lower case: most texts have none, and an expression takes long to say so.
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
	{regexp.MustCompile(`(?s)(-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----).*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|$)`),
		[]string{"private key"}, ""},
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
		`(?:AKIA|ASIA)[A-Z0-9]{12,}|npm_[A-Za-z0-9]{16,})`), []string{"gh", "glpat-", "xox", "akia", "asia", "npm_"}, ""},
	// A bootstrap token of Kubernetes.
	{regexp.MustCompile(`()\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), []string{"."}, ""},
	// The hash of a password, as crypt(3) writes it.
	{regexp.MustCompile(`()\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|scrypt|argon2id?)\$[^\s"':]+`), []string{"$"}, ""},
}

// pair is a key with what follows it: up to the closing quote where there is one, else to the end of the line. The lines that
// continue a YAML block belong to it.
var pair = regexp.MustCompile(`([A-Za-z][\w./-]*)(\\*["']?[ \t]*[:=][ \t]*)` +
	`("(?:[^"\\]|\\.)*"?|'[^'\n]*'?|\\+"(?:[^"\\]|\\[^"])*(?:\\+")?|[|>][^\n]*(?:\n[ \t]+[^\n]*)*|[^\n]*)`)

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
	for text != "" {
		at := pair.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		key, value := text[at[2]:at[3]], text[at[6]:at[7]]
		if !IsSecret(key) {
			out.WriteString(text[:at[5]]) // what follows may hold another key
			text = text[at[5]:]
			continue
		}
		out.WriteString(text[:at[6]])
		out.WriteString(r.hideValue(value))
		text = text[at[7]:]
	}
	out.WriteString(text)
	return out.String()
}

// hideValue keeps the quotes of a value.
func (r *Redactor) hideValue(value string) string {
	plain := strings.TrimLeft(value, `\`)
	slashes := value[:len(value)-len(plain)]
	if plain == "" || plain[0] != '"' && plain[0] != '\'' {
		if isSwitch(value) {
			return value
		}
		return r.hide(value)
	}
	quote := slashes + plain[:1]
	inner := strings.TrimSuffix(strings.TrimPrefix(value, quote), quote)
	if inner == "" || isSwitch(inner) {
		return value
	}
	return quote + r.hide(inner) + quote
}
