// SPDX-License-Identifier: Apache-2.0

package bmcsystems

import "testing"

func TestWordsLeaveOutWhatIsNotThere(t *testing.T) {
	for _, c := range []struct{ serial, mac, want string }{
		{"S", "00:40:a6:00:00:01", `serial "S" and mac "00:40:a6:00:00:01"`},
		{"S", "", `serial "S"`},
		{"", "00:40:a6:00:00:01", `mac "00:40:a6:00:00:01"`},
		{"", "", "neither serial nor mac"},
	} {
		if got := Words(c.serial, c.mac); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.serial, c.mac, got, c.want)
		}
	}
}
