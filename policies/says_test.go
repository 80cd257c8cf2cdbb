// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"
	"testing"
)

func TestEveryRuleIntoErrorSaysWhatToDo(t *testing.T) {
	b, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range b.Lifecycle.Edges() {
		if says := b.Lifecycle.Says(e.Rule); e.To == "Error" && !strings.Contains(says, "retry") {
			t.Errorf("%s leads from %s to Error and says %q: say the cause, and how to retry", e.Rule, e.From, says)
		}
	}
}
