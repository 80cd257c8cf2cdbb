// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bytes"
	"slices"
	"testing"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/lifecycle/verify"
)

func TestWhatIsNotProvenIsTold(t *testing.T) {
	files := shippedFiles(t, DefaultBundle)
	files["lifecycle.yaml"] = bytes.Replace(files["lifecycle.yaml"], []byte("lifecycle.retries >= 3"), []byte("lifecycle.retries + 0 >= 3"), 1)
	_, report, err := Accept(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(report.Found, func(d diag.Diagnostic) bool {
		return d.Code == verify.CodeNotProven && d.Severity == diag.Info && d.File == "lifecycle.yaml"
	}) {
		t.Errorf("nothing is told of it: %v", report.Found)
	}
}
