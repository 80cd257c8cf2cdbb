// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/internal/redact"
)

// identifying are keys whose text identifies a part, a machine or its owner, in lower case.
var identifying = []string{
	"serialnumber", "servicetag", "chassisservicetag", "expressservicecode", "assettag", "hostname", "fqdn", "username", "nodeid",
	"domainname", "emailaddress", "iqn", "initiatorname", "durablename", "wwn", "wwpn", "wwnn",
	"associatednetworkaddresses", "permanentaddress",
}

var (
	uuidPattern = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	macPattern  = regexp.MustCompile(`(?i)\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b`)
	ipv4Pattern = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	ipv6Pattern = regexp.MustCompile(`(?i)\b(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{1,4}\b`)
)

// shortest is the length below which a value is replaced only where it stands, and not wherever its text occurs.
const shortest = 6

// tells reports that a value is replaced wherever its text occurs. A word without a digit, such as Manager, may be a host's name
// and a part of many paths.
func tells(value string) bool {
	return len(value) >= shortest && strings.ContainsAny(value, "0123456789")
}

// WithoutSecrets takes out what internal/redact knows as secrets, and keeps what identifies.
func (t Tree) WithoutSecrets() (Tree, error) {
	documents, secrets, err := t.documents()
	if err != nil {
		return nil, err
	}
	kept := Tree{}
	for uri, document := range documents {
		text, err := json.MarshalIndent(secrets.EverywhereIn(document), "", "  ")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", uri, err)
		}
		kept[secrets.Everywhere(uri)] = text
	}
	return kept, nil
}

// documents decodes the resources without their secrets.
func (t Tree) documents() (map[string]any, *redact.Redactor, error) {
	secrets, documents := &redact.Redactor{}, map[string]any{}
	for _, uri := range slices.Sorted(maps.Keys(t)) {
		var document any
		if err := json.Unmarshal(t[uri], &document); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", uri, err)
		}
		documents[uri] = secrets.Document(document)
	}
	return documents, secrets, nil
}

// Redact replaces serial numbers, UUIDs, MAC and IP addresses, names of hosts and users, and secrets. One value always becomes
// the same other value of its form, wherever it occurs, also in paths. salt decides which; keep it to be able to compare captures.
// The maker's part of a MAC address, models, part numbers and versions stay.
func (t Tree) Redact(salt []byte) (Tree, error) {
	documents, secrets, err := t.documents()
	if err != nil {
		return nil, err
	}
	r := &redactor{salt: salt, known: map[string]string{}}
	for _, document := range documents {
		r.learn("", document)
	}
	everywhere := r.everywhere()
	redacted := Tree{}
	for uri, document := range documents {
		text, err := json.MarshalIndent(r.replace("", secrets.EverywhereIn(document), everywhere), "", "  ")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", uri, err)
		}
		redacted[r.patterns(everywhere.Replace(secrets.Everywhere(uri)))] = text
	}
	return redacted, nil
}

// redactor remembers what became of each value.
type redactor struct {
	salt  []byte
	known map[string]string
}

// learn finds the values of identifying keys.
func (r *redactor) learn(key string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for k, below := range v {
			r.learn(k, below)
		}
	case []any:
		for _, below := range v {
			r.learn(key, below)
		}
	case string:
		if is(identifying, key) && strings.TrimSpace(v) != "" && !isWord(v) {
			r.known[v] = r.likeness(v)
		}
	}
}

// everywhere replaces the longer values wherever they occur; the longest goes first.
func (r *redactor) everywhere() *strings.Replacer {
	values := slices.Collect(maps.Keys(r.known))
	slices.SortFunc(values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	var pairs []string
	for _, value := range values {
		if tells(value) {
			pairs = append(pairs, value, r.known[value])
		}
	}
	return strings.NewReplacer(pairs...)
}

func (r *redactor) replace(key string, value any, everywhere *strings.Replacer) any {
	switch v := value.(type) {
	case map[string]any:
		changed := map[string]any{}
		for k, below := range v {
			changed[k] = r.replace(k, below, everywhere)
		}
		return changed
	case []any:
		for i, below := range v {
			v[i] = r.replace(key, below, everywhere)
		}
		return v
	case string:
		if other, known := r.known[v]; known && is(identifying, key) {
			return r.patterns(other)
		}
		return r.patterns(everywhere.Replace(v))
	}
	return value
}

// patterns replaces what is recognised by its form.
func (r *redactor) patterns(text string) string {
	text = uuidPattern.ReplaceAllStringFunc(text, func(uuid string) string {
		if strings.Trim(uuid, "0-") == "" {
			return uuid
		}
		sum := r.hash("uuid", strings.ToLower(uuid))
		return fmt.Sprintf("%s-%s-4%s-8%s-%s", sum[:8], sum[8:12], sum[13:16], sum[17:20], sum[20:32])
	})
	text = macPattern.ReplaceAllStringFunc(text, func(mac string) string {
		sum := r.hash("mac", strings.ToLower(mac))
		separator := mac[2:3]
		return mac[:8] + separator + strings.Join([]string{sum[:2], sum[2:4], sum[4:6]}, separator)
	})
	text = ipv4Pattern.ReplaceAllStringFunc(text, func(address string) string {
		parsed, err := netip.ParseAddr(address)
		if err != nil || keeps(parsed) || strings.HasPrefix(address, "255.") {
			return address
		}
		sum := sha256.Sum256(append(slices.Clone(r.salt), address...))
		return fmt.Sprintf("198.18.%d.%d", sum[0], sum[1]) // RFC 2544: never routed
	})
	return ipv6Pattern.ReplaceAllStringFunc(text, func(address string) string {
		parsed, err := netip.ParseAddr(address)
		if err != nil || keeps(parsed) {
			return address
		}
		sum := r.hash("ip", parsed.String())
		return "2001:db8::" + sum[:4] + ":" + sum[4:8] // RFC 3849: documentation
	})
}

func keeps(address netip.Addr) bool {
	return address.IsUnspecified() || address.IsLoopback() || address.IsMulticast()
}

// likeness gives another text of the same form: letters for letters, digits for digits.
func (r *redactor) likeness(value string) string {
	sum := sha256.Sum256(append(slices.Clone(r.salt), value...))
	other := []byte(value)
	for i, c := range other {
		b := sum[i%len(sum)] + byte(i/len(sum))
		switch {
		case c >= '0' && c <= '9':
			other[i] = '0' + b%10
		case c >= 'A' && c <= 'Z':
			other[i] = 'A' + b%26
		case c >= 'a' && c <= 'z':
			other[i] = 'a' + b%26
		}
	}
	return string(other)
}

func (r *redactor) hash(kind, value string) string {
	sum := sha256.Sum256(slices.Concat(r.salt, []byte(kind), []byte(value)))
	return hex.EncodeToString(sum[:])
}

func is(keys []string, key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(keys, func(k string) bool { return key == k || strings.HasSuffix(key, k) })
}

// isWord tells words that BMCs write where they know no value.
func isWord(value string) bool {
	return slices.Contains([]string{"n/a", "na", "none", "null", "unknown", "not specified", "not available",
		"to be filled by o.e.m.", "default string", "empty", "n/p"}, strings.ToLower(strings.TrimSpace(value)))
}
