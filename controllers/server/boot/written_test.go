// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"testing"

	"github.com/metalaw/metalaw/controllers/loop"
)

func TestAnObjectThatWasWrittenHoldsNothingBack(t *testing.T) {
	if p := Unwritten(nil, Secret, "metalaw-system", "a"); p.Phase != loop.Done {
		t.Errorf("%+v", p)
	}
}
