// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestAFailureOfOneServerCanBeToldWithoutItsName(t *testing.T) {
	policy, found := Compile(map[string][]byte{"selection.rego": []byte("package metalaw.selection\nallow := true\n")})
	if policy == nil {
		t.Fatal(found)
	}
	large := NewCandidate(Candidate{Name: "rack-7-secret", Labels: map[string]string{"k": strings.Repeat("v", maxCandidateBytes)}})
	_, err := policy.Judge(t.Context(), Claim{}, large, Fleet{})
	var candidate CandidateError
	if !errors.As(err, &candidate) {
		t.Fatalf("got %v", err)
	}
	if text := Anonymous(err); strings.Contains(text, "rack-7") || !strings.Contains(text, "bytes of labels and taints") {
		t.Errorf("it is told %q", text)
	}
	if !strings.Contains(err.Error(), "server rack-7-secret: ") {
		t.Errorf("the log says %q", err)
	}
}

// Rules that fail for what one BMC reports must not keep claims from the other servers.
func TestAServerForWhichThePolicyFailsIsSetAside(t *testing.T) {
	const perCore = "allow := true\nscore := 100 / input.candidate.cores\n"
	server := func(name string, cores int64) Candidate { return Candidate{Name: name, Cores: cores} }
	many := []Candidate{server("good", 1)}
	for i := range MaxFailures + 1 {
		many = append(many, Candidate{Name: fmt.Sprintf("s%03d", i), Model: fmt.Sprint(i)})
	}
	const modelPerCore = "allow := true\nscore := count(input.candidate.model) / input.candidate.cores\n"
	const failed = "selection.rego:3:10: rule score"
	for name, c := range map[string]struct {
		rules      string
		candidates []Candidate
		want       string
	}{
		"one of three": {perCore, []Candidate{server("a", 4), server("b", 0), server("c", 2)}, "[c a], 1 unjudged: the policy cannot be evaluated: " + failed},
		"all of them":  {perCore, []Candidate{server("a", 0), server("b", 0)}, "[], 2 unjudged: the policy cannot be evaluated: " + failed},
		"one that is rejected as well": {perCore + "reject contains {\"code\": \"no\", \"message\": \"no\"} if input.candidate.rack == \"\"\n",
			[]Candidate{server("a", 0)}, "[], 1 unjudged: the policy cannot be evaluated: " + failed},
		"a kind of server of which there are many": {perCore, append([]Candidate{server("good", 1)}, slices.Repeat([]Candidate{server("s", 0)}, 1000)...),
			"[good], 1000 unjudged: the policy cannot be evaluated: " + failed},
		"a server's name that the rule failed on is not told": {"allow := true\nscore := to_number(input.candidate.name)\n", []Candidate{server("secret", 1)},
			"[], 1 unjudged: the policy cannot be evaluated: " + failed},
		"as many kinds as are tried": {modelPerCore, many[:MaxFailures+1], "[good], 128 unjudged: the policy cannot be evaluated: " + failed},
		"one more": {modelPerCore, many, "selection: the rules fail for too many servers, of late: selection.rego:3:10: rule score: div: divide by zero; " +
			"mend the rule, or give what it reads a default"},
		"labels that are too long": {perCore, []Candidate{server("a", 1), {Name: "b", Cores: 1, Labels: map[string]string{"k": strings.Repeat("v", maxCandidateBytes)}}},
			"[a], 1 unjudged: the policy cannot be evaluated: it has 524290 bytes of labels and taints and at most 524288 are read; shorten them"},
	} {
		policy := compiled(t, rego(c.rules))
		var candidates []*PreparedCandidate
		for _, one := range c.candidates {
			candidates = append(candidates, NewCandidate(one))
		}
		result, err := policy.Select(t.Context(), Claim{}, candidates, Fleet{})
		names := []string{}
		for _, r := range result.Ranked {
			names = append(names, r.Name)
		}
		got := fmt.Sprintf("%v, %d unjudged: %s", names, result.Unjudged.Count, result.Unjudged.Message)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
