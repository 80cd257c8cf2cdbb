// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestKnownInterfaces(t *testing.T) {
	nic := func(name, mac string) []v1alpha1.NetworkInterface {
		return []v1alpha1.NetworkInterface{{Name: name, MACAddress: mac}}
	}
	given := Stated{MACs: []string{"02:00:00:00:00:0a"}}
	for name, c := range map[string]struct {
		stored, shown []v1alpha1.NetworkInterface
		stated        Stated
		want          []v1alpha1.NetworkInterface
	}{
		"nothing is known":                           {},
		"what the BMC shows counts":                  {shown: nic("1", "a"), stated: given, want: nic("1", "a")},
		"what the annotation gives counts else":      {stated: given, want: nic("by-annotation-0", "02:00:00:00:00:0a")},
		"what the machine reported stays":            {stored: nic("eth0", "e"), shown: nic("1", "a"), stated: given, want: nic("eth0", "e")},
		"a changed annotation replaces its own":      {stored: nic("by-annotation-0", "old"), stated: given, want: nic("by-annotation-0", "02:00:00:00:00:0a")},
		"an annotation that is gone takes its own":   {stored: nic("by-annotation-0", "old")},
		"an annotation that cannot be read does not": {stored: nic("by-annotation-0", "old"), stated: Stated{Unread: "bad"}, want: nic("by-annotation-0", "old")},
		"what the BMC comes to show replaces it":     {stored: nic("by-annotation-0", "old"), shown: nic("1", "a"), stated: given, want: nic("1", "a")},
	} {
		if diff := cmp.Diff(c.want, KnownInterfaces(c.stored, c.shown, c.stated)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
