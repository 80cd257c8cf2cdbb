// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"strings"
	"testing"
)

func TestAFailureOfOneServerCanBeToldWithoutItsName(t *testing.T) {
	policy, found := Compile(map[string][]byte{"selection.rego": []byte("package metalaw.selection\nallow := true\n")})
	if policy == nil {
		t.Fatal(found)
	}
	large := NewCandidate(Candidate{Name: "rack-7-secret", Labels: map[string]string{"k": strings.Repeat("v", maxCandidateBytes)}})
	_, err := policy.Select(t.Context(), Claim{}, []*PreparedCandidate{large}, Fleet{})
	var candidate CandidateError
	if !errors.As(err, &candidate) {
		t.Fatalf("got %v", err)
	}
	if text := candidate.Anonymous(); strings.Contains(text, "rack-7") || !strings.Contains(text, "bytes of labels and taints") {
		t.Errorf("it is told %q", text)
	}
	if !strings.Contains(err.Error(), "server rack-7-secret: ") {
		t.Errorf("the log says %q", err)
	}
}
