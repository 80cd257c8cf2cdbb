// SPDX-License-Identifier: Apache-2.0

package yamlpos

import (
	"testing"
	"time"
)

func TestALengthThatIsTooLongIsToldFromWhatIsNone(t *testing.T) {
	for text, want := range map[string]bool{"2562047h": false, "2562048h": true, "-9999999h": false, "1h9999999999999m": true, "99999999999.5s": true,
		"15m": false, "soon": false, "9999999": false, "": false, "h": false, "9999999h soon": false, "wipe.budget": false} {
		if got := TooLong(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if Longest != "2562047h" {
		t.Error(Longest)
	}
}

func TestALengthIsWrittenWithoutZeros(t *testing.T) {
	for d, want := range map[time.Duration]string{24 * time.Hour: "24h", 15 * time.Minute: "15m", 90 * time.Minute: "1h30m", 10 * time.Second: "10s", 0: "0s"} {
		if got := LengthText(d); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
}
