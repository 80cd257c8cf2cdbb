// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestTheHolderReadsThatItsServerIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"a claim that nobody asked says nothing": {nil, ""},
		"one that was asked says what its holder can do": {map[string]string{"metal.ironcore.dev/maintenance-needed": "true"},
			"its server is wanted for a maintenance, or is to go out of service. Approve with label metal.ironcore.dev/maintenance-approved, " +
				"or delete the claim; metalaw explain server says which"},
		"one that approved says so": {map[string]string{"metal.ironcore.dev/maintenance-needed": "true", "metal.ironcore.dev/maintenance-approved": ""},
			"its server is wanted, and the claim bears an approval; metalaw explain server says for which maintenance"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &v1alpha1.ServerClaim{}
			claim.Labels = c.labels
			if got := wanted(claim); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
