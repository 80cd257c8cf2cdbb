// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/macprefixes"
)

func TestABMCIsMadeWithTheLabelsOfItsEndpoint(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"all of them": {"rack": "r1", "row": "b"},
		"or none":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			e := &v1alpha1.Endpoint{}
			e.Name, e.Labels = "e", labels
			if diff := cmp.Diff(labels, newBMC(e, macprefixes.Row{}).Labels); diff != "" {
				t.Error(diff)
			}
		})
	}
}
