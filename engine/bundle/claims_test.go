// SPDX-License-Identifier: Apache-2.0

package bundle

import "testing"

func TestWhatAQuotaSaysWhereItIsUsedUp(t *testing.T) {
	quota := Quota{Namespaces: map[string]int{"two": 2, "none": 0}}
	for name, c := range map[string]struct {
		namespace  string
		used, more int
		want       string
	}{
		"a namespace without a quota has room":  {"other", 90, 10, ""},
		"the second of two has room":            {"two", 1, 1, ""},
		"nobody asks for more":                  {"two", 3, 0, ""},
		"the third waits for one of the two":    {"two", 2, 1, "the claims of the namespace have 2 of the 2 servers that its quota allows; this one gets a server once another has ended, or the quota is raised"},
		"a gang waits until all of it has room": {"two", 1, 2, "the claims of the namespace have 1 of the 2 servers that its quota allows; the 2 of its gang that have none get servers together once another has ended, or the quota is raised"},
		"where none is allowed the end of another does not help": {"none", 0, 1,
			"the quota of the namespace allows its claims no server; this one gets one once the quota is raised"},
		"nor does it where one is left from before": {"none", 1, 1,
			"the quota of the namespace allows its claims no server; this one gets one once the quota is raised"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quota.Exceeded(c.namespace, c.used, c.more); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestAQuotaThatIsTooSmallForAWholeGang(t *testing.T) {
	quota := Quota{Namespaces: map[string]int{"two": 2, "none": 0}}
	for name, c := range map[string]struct {
		namespace string
		size      int64
		want      string
	}{
		"a namespace without a quota has room": {"other", 256, ""},
		"a gang of two has room among two":     {"two", 2, ""},
		"a gang of three has none, whatever ends": {"two", 3, "it takes 3 servers, and the quota of the namespace allows its claims 2. " +
			"None of its members gets one until the quota is raised or the gang is smaller"},
		"nor has any where none is allowed": {"none", 2, "it takes 2 servers, and the quota of the namespace allows its claims 0. " +
			"None of its members gets one until the quota is raised or the gang is smaller"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quota.TooSmall(c.namespace, c.size); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
