// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/hex"
	"slices"
	"strings"
)

// identityPlaceholders are what firmware writes where a factory wrote nothing, in lower case.
var identityPlaceholders = []string{
	"default", "default string", "empty", "invalid", "n/a", "na", "none", "not applicable", "not available",
	"not specified", "null",
	"serial", "serial number", "serialnumber", "to be filled by o.e.m.", "undefined", "unknown", "unspecified",
}

// identitySequences are the rows of keys that firmware writes in place of a number; a part from their beginning counts
// as well.
var identitySequences = []string{"0123456789abcdef", "123456789abcdef", "1234567890abcdef",
	"123456789012345678901234567890"}

// shortestSequence is how much of a sequence is no coincidence.
const shortestSequence = 8

// DiskIdentifies says whether a wwid or a serial number tells a disk from others. Zeros and placeholders of firmware
// tell nothing: whole batches of disks show the same.
func DiskIdentifies(text string) bool {
	word := strings.ToLower(strings.TrimSpace(text))
	kind, rest, typed := strings.Cut(word, ".")
	switch {
	case !typed:
		return identifies(strings.TrimPrefix(word, "0x"))
	case kind == "naa", kind == "eui":
		return identifies(rest) && !withoutMaker(kind, rest)
	case kind == "uuid":
		return identifies(strings.ReplaceAll(rest, "-", ""))
	case kind == "nvme":
		return nvmeIdentifies(rest)
	}
	return identifies(word)
}

// identifies judges the bare number or word, in lower case.
func identifies(word string) bool {
	if strings.Trim(word, "0 .-_*#?:/") == "" || strings.Trim(word, "f") == "" || strings.Trim(word, "x") == "" {
		return false
	}
	if len(word) >= 4 && strings.Trim(word, word[:1]) == "" {
		return false
	}
	if slices.Contains(identityPlaceholders, word) {
		return false
	}
	return len(word) < shortestSequence ||
		!slices.ContainsFunc(identitySequences, func(row string) bool { return strings.HasPrefix(row, word) })
}

// withoutMaker finds the maker's number (OUI) to be zero: enclosures and bridges make up such names, as
// 5000000000000001.
func withoutMaker(kind, digits string) bool {
	const none = "000000"
	switch {
	case kind == "eui" && len(digits) == 16:
		return strings.HasPrefix(digits, none)
	case kind == "naa" && len(digits) > 7 && (digits[0] == '5' || digits[0] == '6'):
		return digits[1:7] == none
	}
	return false
}

// nvmeIdentifies judges the name that Linux makes of an NVMe drive without one: vendor, serial number, model and
// namespace, in hex.
func nvmeIdentifies(rest string) bool {
	parts := strings.Split(rest, "-")
	if len(parts) != 4 {
		return identifies(rest)
	}
	serial, err := hex.DecodeString(parts[1])
	return err == nil && identifies(strings.ToLower(strings.Trim(string(serial), " \x00")))
}
