// SPDX-License-Identifier: Apache-2.0

package policies

import "strings"

// InventoryNames are the names under which the inventory of a system may be kept, lower case: the UUID as given, and
// then the same with the byte order of its first three groups turned, because a BMC and the firmware tables of its host
// often disagree about it. There is one name where the text is not a UUID with dashes or reads the same in both orders,
// and none where it is empty.
func InventoryNames(systemUUID string) []string {
	given := strings.ToLower(systemUUID)
	if given == "" {
		return nil
	}
	turned := otherByteOrder(given)
	if turned == given {
		return []string{given}
	}
	return []string{given, turned}
}

// otherByteOrder turns the first three groups of a lower-case UUID with dashes; other text is returned as it is.
func otherByteOrder(uuid string) string {
	groups := strings.Split(uuid, "-")
	if len(groups) != 5 {
		return uuid
	}
	for i, length := range []int{8, 4, 4, 4, 12} {
		if len(groups[i]) != length || strings.Trim(groups[i], "0123456789abcdef") != "" {
			return uuid
		}
	}
	for i := range 3 {
		groups[i] = turned(groups[i])
	}
	return strings.Join(groups, "-")
}

// turned reverses the order of the bytes that an even number of digits spells.
func turned(digits string) string {
	var out strings.Builder
	for i := len(digits) - 2; i >= 0; i -= 2 {
		out.WriteString(digits[i : i+2])
	}
	return out.String()
}
