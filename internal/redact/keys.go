// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"
)

// within are parts of a key that make it secret wherever they stand in it, without separators and in lower case.
var within = []string{"password", "passwd", "passphrase", "community", "authorization", "licen", "token", "cookie", "privatekey", "certificatestring"}

// ends are ends of such keys.
var ends = []string{"key", "keys", "salt", "hash", "hashes", "hashvalue", "secret", "secrets", "pwd", "psk", "keystring"}

// begins are beginnings of such keys.
var begins = []string{"secret", "hashvalue"}

// harmless are ends of keys that name an object which holds a secret, or nothing at all: the name is no secret.
var harmless = []string{"secretref", "secretname", "secretrefname", "topologykey", "hotkey"}

// secretAnnotations hold a secret, though their names do not say so.
var secretAnnotations = []string{"policy.metalaw.dev/media-url"}

// separators stand between the words of a key.
var separators = strings.NewReplacer("-", "", "_", "", ".", "", " ", "", "/", "", "#", "")

// IsSecret says that what stands at a key may be a secret. What OData adds to a key, such as the values that it allows, is none.
func IsSecret(key string) bool {
	if slices.Contains(secretAnnotations, key) {
		return true
	}
	if strings.Contains(key, "@") {
		return false
	}
	plain := separators.Replace(strings.ToLower(key))
	has := func(all []string, in func(string, string) bool) bool {
		return slices.ContainsFunc(all, func(one string) bool { return in(plain, one) })
	}
	if has(harmless, strings.HasSuffix) {
		return false
	}
	return has(within, strings.Contains) || has(ends, strings.HasSuffix) || has(begins, strings.HasPrefix)
}

// isWordFor says that a number at a key may be a secret: one of a password is, and the length of one is not.
func isWordFor(key string) bool {
	plain := separators.Replace(strings.ToLower(key))
	return slices.ContainsFunc([]string{"password", "passwd", "passphrase", "pwd", "token", "secret", "key"}, func(one string) bool {
		return strings.HasSuffix(plain, one)
	})
}

// namesSecret says that a map is a pair of a name and a value, and that the name is that of a secret.
func namesSecret(v map[string]any) bool {
	for key, value := range v {
		name, is := value.(string)
		switch strings.ToLower(key) {
		case "name", "key", "attributename", "id", "property":
			if is && IsSecret(name) {
				return true
			}
		}
	}
	return false
}

// isValue says that a key is that of the value in such a pair.
func isValue(key string) bool {
	return slices.Contains([]string{"value", "currentvalue", "defaultvalue", "stringvalue", "data"}, strings.ToLower(key))
}

// selects says that the key of a map is that of a label, of a taint, or in an object that is named beside it.
func selects(v map[string]any) bool {
	for _, beside := range []string{"operator", "effect", "values", "maxSkew", "name", "path", "optional"} {
		if _, has := v[beside]; has {
			return true
		}
	}
	return false
}

// isLink says that what stands at a key leads to a resource, or says its type.
func isLink(key string) bool {
	return strings.HasPrefix(key, "@odata.") || strings.EqualFold(key, "target")
}

// isSwitch tells words that say whether something is there, which is no secret.
func isSwitch(value string) bool {
	return slices.Contains([]string{"enabled", "disabled", "enable", "disable", "true", "false", "yes", "no", "none", "null", "n/a",
		"notsupported", "supported", "unavailable"}, strings.ToLower(strings.TrimSpace(value)))
}
