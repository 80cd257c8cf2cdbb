// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

const defaultBundle = "../../policies/bundles/default/"

// bundled reads files of the default bundle.
func bundled(t testing.TB, names ...string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(defaultBundle + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	return files
}

func compiled(t testing.TB, files map[string][]byte) *Policy {
	t.Helper()
	policy, found := Compile(files)
	if policy == nil {
		t.Fatal(found.Err())
	}
	return policy
}

func rego(body string) map[string][]byte {
	return map[string][]byte{"selection.rego": []byte("package metalaw.selection\n" + body)}
}

func prepared(candidates ...Candidate) []*PreparedCandidate {
	var out []*PreparedCandidate
	for _, c := range candidates {
		out = append(out, NewCandidate(c))
	}
	return out
}

func TestDefaultPolicyHoldsItsOwnTests(t *testing.T) {
	report, found := RunTests(t.Context(), bundled(t, "selection.rego", "selection_test.rego"))
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	failed := func(result regosandbox.TestResult) bool { return !result.Passed }
	all := report.Files["selection.rego"]
	if len(report.Results) != 13 || slices.ContainsFunc(report.Results, failed) || all.Covered != all.All || all.All == 0 {
		t.Errorf("%+v", report)
	}
}

func TestDefaultPolicyRanksAndExplains(t *testing.T) {
	got, err := compiled(t, bundled(t, "selection.rego")).Select(t.Context(), Claim{}, prepared(
		Candidate{Name: "gpu", Health: "OK", GPUs: 8, MemoryGiB: 2048},
		Candidate{Name: "sick", Health: "Critical"},
		Candidate{Name: "small-b", Health: "Unknown", MemoryGiB: 256},
		Candidate{Name: "small-a", Health: "OK", MemoryGiB: 256},
		Candidate{Name: "warned", Health: "Warning"},
	), Fleet{})
	want := Result{
		Ranked:     []Ranked{{"small-a", 150}, {"small-b", 150}, {"gpu", 110}, {"warned", 60}},
		Allowed:    4,
		Rejections: map[string]Rejection{"unhealthy": {1, "its BMC reports health Critical"}},
		Evaluated:  5,
	}
	if diff := cmp.Diff(want, got, sameFailure); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestSelect(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want Result
	}{
		"ties are broken by name": {"allow := true\n",
			Result{Ranked: []Ranked{{"a", 0}, {"b", 0}, {"c", 0}}, Evaluated: 3}},
		"the highest score comes first": {"allow := true\nscore := input.candidate.cores\n",
			Result{Ranked: []Ranked{{"c", 3}, {"b", 2}, {"a", 1}}, Evaluated: 3}},
		"a reject rule overrides allow": {"allow := true\nreject contains {\"code\": \"no-b\", \"message\": \"not b\"} if input.candidate.name == \"b\"\n",
			Result{Ranked: []Ranked{{"a", 0}, {"c", 0}}, Rejections: map[string]Rejection{"no-b": {1, "not b"}}, Evaluated: 3}},
		"what is not allowed and has no reason says so": {"allow if input.candidate.cores > 2\n",
			Result{Ranked: []Ranked{{"c", 0}}, Rejections: map[string]Rejection{"not-allowed": {2, "the policy does not allow it"}}, Evaluated: 3}},
		"allow that is false is like allow that is undefined": {"allow := false\n",
			Result{Rejections: map[string]Rejection{"not-allowed": {3, "the policy does not allow it"}}, Evaluated: 3}},
		"a candidate counts once under each of its codes, and the message is that of the first name": {`allow := true
reject contains {"code": "x", "message": sprintf("first %s", [input.candidate.name])}
reject contains {"code": "x", "message": sprintf("second %s", [input.candidate.name])}
reject contains {"code": "y", "message": "y"} if input.candidate.cores > 1
`, Result{Rejections: map[string]Rejection{"x": {3, "first a"}, "y": {2, "y"}}, Evaluated: 3}},
		"claim and fleet are seen": {"allow if input.fleet.claimedByRack[input.candidate.rack] < to_number(input.claim.labels.most)\n",
			Result{Ranked: []Ranked{{"b", 0}}, Rejections: map[string]Rejection{"not-allowed": {2, "the policy does not allow it"}}, Evaluated: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := compiled(t, rego(c.body)).Select(t.Context(), Claim{Labels: map[string]string{"most": "2"}}, prepared(
				Candidate{Name: "c", Cores: 3}, Candidate{Name: "a", Cores: 1, Rack: "r1"}, Candidate{Name: "b", Cores: 2, Rack: "r2"},
			), Fleet{ClaimedByRack: map[string]int64{"r1": 2, "r2": 1}})
			c.want.Allowed = len(c.want.Ranked)
			if c.want.Rejections == nil {
				c.want.Rejections = map[string]Rejection{}
			}
			if diff := cmp.Diff(c.want, got, sameFailure); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestAnErrorIsNeverANo(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"allow fails":             {"allow if to_number(input.candidate.model) > 1\n", `selection: server a: selection.rego:2:10: rule allow: to_number: strconv.ParseFloat: parsing "x": invalid syntax`},
		"reject fails":            {"allow := true\nreject contains {\"code\": \"a\", \"message\": \"m\"} if {\n\t1 / input.candidate.cores > 1\n}\n", "selection.rego:4:2: rule reject: div: divide by zero"},
		"score fails":             {"allow := true\nscore := 1 / input.candidate.cores\n", "selection.rego:3:10: rule score: div: divide by zero"},
		"score is no number":      {"allow := true\nscore := input.claim[input.candidate.sku]\n", `server a: policy metalaw.selection: rule score: is "claim", and must be a number`},
		"score is beyond numbers": {"allow := true\nscore := to_number(\"1e999\")\n", "rule score"},
		"allow is no boolean":     {"allow := [1, true][input.candidate.cores]\n", `rule allow: is 1, and must be true or false`},
		"two scores":              {"allow := true\nscore := 1\nscore := 2 if input.candidate.name == \"a\"\n", "rule score: rule data.metalaw.selection.score produced conflicting values"},
	} {
		t.Run(name, func(t *testing.T) {
			policy, one := compiled(t, rego(c.body)), prepared(Candidate{Name: "a", Model: "x", SKU: "name"})
			_, err := policy.Judge(t.Context(), Claim{Name: "claim"}, one[0], Fleet{})
			var evalErr *EvalError
			if !errors.As(err, &evalErr) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v; want an error with %q", err, c.says)
			}
			got, err := policy.Select(t.Context(), Claim{Name: "claim"}, one, Fleet{})
			if err != nil || got.Unjudged.Count != 1 || len(got.Rejections) != 0 || len(got.Ranked) != 0 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestSelectStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := compiled(t, rego("allow := true\n")).Select(ctx, Claim{}, prepared(Candidate{Name: "a"}), Fleet{})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOversizedInputIsAnError(t *testing.T) {
	policy, big := compiled(t, rego("allow := true\n")), strings.Repeat("x", 600<<10)
	one := prepared(Candidate{Name: "a"})
	for says, call := range map[string]func() (Result, error){
		"claim ns/c has 614401 bytes": func() (Result, error) {
			return policy.Select(t.Context(), Claim{Namespace: "ns", Name: "c", Annotations: map[string]string{"k": big}}, one, Fleet{})
		},
		"server a: it has 614402 bytes": func() (Result, error) {
			_, err := policy.Judge(t.Context(), Claim{}, NewCandidate(Candidate{Name: "a", Labels: map[string]string{"k": big}}), Fleet{})
			return Result{}, err
		},
		"20001 candidates are more than the 20000": func() (Result, error) {
			return policy.Select(t.Context(), Claim{}, make([]*PreparedCandidate, MaxCandidates+1), Fleet{})
		},
	} {
		t.Run(says, func(t *testing.T) {
			if _, err := call(); err == nil || !strings.Contains(err.Error(), says) {
				t.Error(err)
			}
		})
	}
}

func TestAnUnknownFactDoesNotCompile(t *testing.T) {
	_, found := Compile(rego("allow if input.candidate.memory > 1\n"))
	if len(found) != 1 || !strings.HasPrefix(found[0].String(),
		"selection.rego:2:10: error: allow: input.candidate.memory does not exist (there are memoryGiB, manufacturer, model, availableDay, availableSince,") {
		t.Error(found)
	}
}

func TestAPolicyIsSharedByGoroutines(t *testing.T) {
	policy, candidates := compiled(t, bundled(t, "selection.rego")), prepared(Candidate{Name: "a"}, Candidate{Name: "b"})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if got, err := policy.Select(context.Background(), Claim{}, candidates, Fleet{}); err != nil || got.Ranked[0].Name != "a" {
					t.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
}

// The order of the candidates does not matter, Judge agrees with Select, and every candidate is either ranked or counted.
func TestSelectIsAFunctionOfTheSet(t *testing.T) {
	policy := compiled(t, bundled(t, "selection.rego"))
	rapid.Check(t, func(r *rapid.T) {
		var candidates []*PreparedCandidate
		for i := range rapid.IntRange(0, 12).Draw(r, "servers") {
			candidates = append(candidates, NewCandidate(Candidate{
				Name: fmt.Sprintf("s%02d", i), MemoryGiB: rapid.SampledFrom([]int64{0, 256, 4096}).Draw(r, "memory"),
				Health: rapid.SampledFrom([]string{"OK", "Warning", "Critical", "Unknown"}).Draw(r, "health"),
				Rack:   rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(r, "rack"), GPUs: rapid.Int64Range(0, 1).Draw(r, "gpus"),
			}))
		}
		fleet := Fleet{TotalByRack: map[string]int64{"r1": 3, "r2": 7}, ClaimedByRack: map[string]int64{"r1": 1}}
		want, err := policy.Select(context.Background(), Claim{}, candidates, fleet)
		if err != nil {
			r.Fatal(err)
		}
		got, err := policy.Select(context.Background(), Claim{}, rapid.Permutation(candidates).Draw(r, "order"), fleet)
		if diff := cmp.Diff(want, got, sameFailure); err != nil || diff != "" {
			r.Fatal(err, diff)
		}
		scores := map[string]float64{}
		for _, ranked := range want.Ranked {
			scores[ranked.Name] = ranked.Score
		}
		for _, c := range candidates {
			judgement, err := policy.Judge(context.Background(), Claim{}, c, fleet)
			score, ranked := scores[c.Name()]
			if err != nil || judgement.Allowed != ranked || judgement.Score != score || ranked != (len(judgement.Reasons) == 0) {
				r.Fatalf("%s: %+v, %v; ranked %v with %v", c.Name(), judgement, err, ranked, score)
			}
		}
	})
}
