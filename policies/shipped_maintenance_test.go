// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/maintenance"
)

func TestWhatShippedBundlesSayOfMaintenance(t *testing.T) {
	spelledOut := maintenance.Default()
	spelledOut.Windows, spelledOut.Waves, spelledOut.Pre, spelledOut.Post = []maintenance.Window{}, []maintenance.Wave{}, []maintenance.Check{}, []maintenance.Check{}
	spelledOut.ReleaseGrace = 5 * time.Minute
	for name, want := range map[string]*maintenance.Policy{
		DefaultBundle:  spelledOut,
		"no-discovery": spelledOut,
		"compat-v0.7":  {PerClaim: true, Expected: time.Hour, Limits: []maintenance.Limit{}},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := Shipped(name)
			if err != nil {
				t.Fatal(err)
			}
			compiled, found, err := bundle.Compile(files, Vocabulary())
			if err != nil || compiled == nil {
				t.Fatal(err, found)
			}
			if diff := cmp.Diff(want, compiled.Settings.Maintenance); diff != "" {
				t.Error(diff)
			}
		})
	}
}
