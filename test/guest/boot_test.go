// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"encoding/json"
	"testing"
	"time"
)

func TestAReportSaysWhenItWasMade(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	text, err := json.Marshal(Machine{}.describe(now))
	if want := `{"timestamp":"2026-08-01T12:00:00.000000Z","hiddenKnown":true}`; err != nil || string(text) != want {
		t.Errorf("got %s (%v), want %s", text, err, want)
	}
}
