// SPDX-License-Identifier: Apache-2.0

package macprefixes

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Digits of an EUI-48 address and of the shortest prefix that the IEEE assigns.
const (
	macDigits       = 12
	minPrefixDigits = 6
	multicastBit    = 0x01
	hexDigits       = "0123456789abcdef"
)

// ErrMulticast says that an address is a multicast address. No port has one, but clients of the API store some.
var ErrMulticast = errors.New("is a multicast address (the lowest bit of its first byte is set), which no port has")

// Normalize returns an EUI-48 address in lower case with colons ("b0:7b:25:00:0a:ff"). It accepts any case and the
// separators ':', '-', '.' and ' ' or none. It refuses what cannot be the address of one port: multicast addresses,
// all zeros and all ones.
func Normalize(mac string) (string, error) {
	value, err := parseMAC(mac)
	if err != nil {
		return "", fmt.Errorf("MAC address %q: %w", abbreviate(mac), err)
	}
	return format(value, macDigits), nil
}

func parseMAC(text string) (uint64, error) {
	value, digits, err := parseHex(text)
	if err != nil {
		return 0, err
	}
	switch {
	case digits == 0:
		return 0, errors.New("is empty; write it like b0:7b:25:00:0a:ff")
	case digits == 16:
		return 0, errors.New("has 16 hexadecimal digits, which is an EUI-64; an EUI-48 with 12 digits is needed")
	case digits != macDigits:
		return 0, fmt.Errorf("has %d hexadecimal digits and needs 12; write every byte with two digits, like b0:7b:25:00:0a:ff", digits)
	}
	return value, checkUnicast(value, macDigits)
}

// parsePrefix reads 6 to 12 hexadecimal digits.
func parsePrefix(text string) (value uint64, digits int, err error) {
	value, digits, err = parseHex(text)
	if err != nil {
		return 0, 0, err
	}
	if digits < minPrefixDigits || digits > macDigits {
		return 0, 0, fmt.Errorf("has %d hexadecimal digits; a prefix has 6 (24 bit), 7 (28 bit), 9 (36 bit) or any number up to 12", digits)
	}
	return value, digits, checkUnicast(value, digits)
}

func checkUnicast(value uint64, digits int) error {
	firstByte := value >> (4 * (digits - 2))
	switch {
	case value == 0:
		return errors.New("is all zeros, which no port has")
	case value == 1<<(4*digits)-1:
		return errors.New("is all ones, which is the broadcast address")
	case firstByte&multicastBit != 0:
		return ErrMulticast
	}
	return nil
}

// parseHex reads hexadecimal digits in groups. Every group but the last has whole bytes, so that an address written
// without its leading zeros ("0:1b:...") is refused instead of being shifted.
func parseHex(text string) (value uint64, digits int, err error) {
	group := 0
	for i, r := range text {
		if strings.ContainsRune(":-. ", r) {
			if group%2 != 0 {
				return 0, 0, fmt.Errorf("has an odd number of digits before character %d; write every byte with two digits", i+1)
			}
			group = 0
			continue
		}
		nibble := strings.IndexRune(hexDigits, unicode.ToLower(r))
		if nibble < 0 {
			return 0, 0, fmt.Errorf("has %q as character %d, which is neither a hexadecimal digit nor one of the separators ':', '-', '.' and ' '",
				r, i+1)
		}
		digits, group = digits+1, group+1
		if digits <= macDigits {
			value = value<<4 | uint64(nibble)
		}
	}
	return value, digits, nil
}

// format writes digits hexadecimal digits in lower case with a colon after every second one.
func format(value uint64, digits int) string {
	out := make([]byte, 0, digits+digits/2)
	for i := range digits {
		if i > 0 && i%2 == 0 {
			out = append(out, ':')
		}
		out = append(out, hexDigits[value>>(4*(digits-1-i))&0xf])
	}
	return string(out)
}

// abbreviate keeps a hostile value from filling a condition or an event.
func abbreviate(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
