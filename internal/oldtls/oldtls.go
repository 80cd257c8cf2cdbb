// SPDX-License-Identifier: Apache-2.0

// Package oldtls reads which TLS one BMC is allowed that Go no longer speaks by default.
package oldtls

import (
	"slices"
	"strings"
)

// The words of the annotation.
const (
	RSAKeyExchange = "rsa-key-exchange"
	NegativeSerial = "negative-serial"
)

// Words are all words, for messages.
func Words() []string { return []string{RSAKeyExchange, NegativeSerial} }

// Allowed is what one BMC is allowed.
type Allowed struct {
	// RSAKeyExchange offers cipher suites in which the BMC's key encrypts the session's.
	RSAKeyExchange bool
	// NegativeSerial takes a certificate whose serial number is negative.
	NegativeSerial bool
}

// Parse reads words that commas or white space separate. Others are returned in their order.
func Parse(text string) (a Allowed, unknown []string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		switch word {
		case RSAKeyExchange:
			a.RSAKeyExchange = true
		case NegativeSerial:
			a.NegativeSerial = true
		default:
			if !slices.Contains(unknown, word) {
				unknown = append(unknown, word)
			}
		}
	}
	return a, unknown
}
