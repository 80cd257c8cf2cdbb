// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"cmp"
	"strings"
)

// onServer orders the maintenances of one server: the higher priority, enforced, the older, by name.
func onServer(a, b *Maintenance) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), enforcedFirst(a.Enforced, b.Enforced), byAge(a, b))
}

// inQueue orders the maintenances of all servers, in which limits are given away: the higher priority, the older, by name.
func inQueue(a, b *Maintenance) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), byAge(a, b)) }

func byAge(a, b *Maintenance) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
		strings.Compare(string(a.UID), string(b.UID)))
}

func enforcedFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
