// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

func TestWhatIsInterpretedIsSaidWithPlaceReasonAndRemedy(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a comprehension": {"allow if count([t | some t in input.candidate.taints]) == 0\n",
			"selection.rego:2:16: warning: allow: the policy is interpreted for each server, which takes about a thousand times as long, because of a comprehension " +
				"(write it with conditions on input.candidate, with helper rules, or with some x in a list) [rego-interpreted]"},
		"every": {"allow if {\n\tevery t in input.candidate.taints { t.key != \"x\" }\n}\n",
			"selection.rego:3:2: warning: allow: the policy is interpreted for each server, which takes about a thousand times as long, because of every " +
				"(write a helper rule with some x in a list and the opposite condition, and negate the helper) [rego-interpreted]"},
		"a place in a helper": {"allow if helper\nhelper if f(input.candidate)\nf(c) if c.cores > 1\n",
			"selection.rego:3:13: warning: helper: the policy is interpreted for each server, which takes about a thousand times as long, " +
				"because input.candidate is used as a whole (name its fields, such as input.candidate.cores) [rego-interpreted]"},
		"a message without its code": {"allow := true\nreject contains {\"code\": input.claim.image, \"message\": \"m\"} if true\n",
			"selection.rego:3:1: warning: reject: the policy is interpreted for each server, which takes about a thousand times as long, because the code is not " +
				"written out (write {\"code\": \"word\", \"message\": ...} in the head of the rule, with one rule for each code) [rego-interpreted]"},
	} {
		t.Run(name, func(t *testing.T) {
			policy, found := Compile(rego(c.body))
			if policy == nil || policy.IsNative() || len(found) != 1 || found[0].String() != c.want {
				t.Errorf("%v\nwant %s", found, c.want)
			}
		})
	}
}

func TestTheDefaultPolicyIsNative(t *testing.T) {
	policy, found := Compile(bundled(t, "selection.rego"))
	if len(found) != 0 || !policy.IsNative() || len(policy.native.program.Factors) > fewFactors {
		t.Error(found)
	}
}

// Classes make the default policy about twenty times as fast over 10,000 servers as judging each.
func TestTheDefaultPolicyPutsAFleetIntoFewClasses(t *testing.T) {
	policy := compiled(t, bundled(t, "selection.rego"))
	candidates, fleet := benchmarkFleet(10000)
	s, at := policy.native.begin(&benchmarkClaim, &fleet), policy.native.generation()
	defer policy.native.end(s)
	for _, c := range candidates {
		if policy.native.verdict(s, at.of(c), c).unsure {
			t.Fatalf("the interpreter has to be asked about %s", c.Name())
		}
	}
	if s.verdicts.used > 500 {
		t.Errorf("it puts 10000 servers into %d classes", s.verdicts.used)
	}
}

// Every field of the input is read natively, and as the interpreter reads it.
func TestEveryFieldIsReadAsTheInterpreterReadsIt(t *testing.T) {
	in := Input{
		Claim: Claim{Namespace: "ns", Name: "n", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Priority: 3, Image: "i",
			Power: "On", ServerRef: "s", Selector: map[string]string{"e": "f"}, Tolerations: []Toleration{{"k", "o", "v", "e"}}},
		Candidate: Candidate{Name: "c", Labels: map[string]string{"g": "h"}, Taints: []Taint{{"k", "v", "e"}}, Manufacturer: "m", Model: "mo", SKU: "sk",
			BIOSVersion: "bv", CPUModel: "cm", CPUCount: 1, Cores: 2, MemoryGiB: 3, DiskCount: 4, Disks: DiskCounts{1, 2, 3}, DiskMinBytes: 19, DiskMaxBytes: 20,
			NICTotalSpeed: 21, DiskBytes: DiskBytes{5, 6, 7, 8}, NICCount: 9, NICMaxSpeed: 10, GPUs: 11, Health: "he",
			Zone: "z", Region: "re", Rack: "ra", InstanceType: "it", AvailableSince: 12, AvailableDay: 13, TimesClaimed: 14},
		Fleet: Fleet{Now: 15, Today: 16, Total: 17, Claimed: 18, TotalByZone: map[string]int64{"z": 1}, TotalByRack: map[string]int64{"r": 2},
			ClaimedByZone: map[string]int64{"z": 3}, ClaimedByRack: map[string]int64{"r": 4},
			FreeByZone: map[string]int64{"z": 5}, FreeByRack: map[string]int64{"r": 6},
			NamespaceByZone: map[string]int64{"z": 7}, NamespaceByRack: map[string]int64{"r": 8}},
	}
	seen := 0
	var walk func(v reflect.Value, path []string)
	walk = func(v reflect.Value, path []string) {
		if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				walk(v.Field(i), append(path[:len(path):len(path)], v.Type().Field(i).Tag.Get("json")))
			}
			return
		}
		f := fields[strings.Join(path, ".")]
		if f == nil || v.IsZero() {
			t.Errorf("%v is not read, or the test sets it to nothing", path)
			return
		}
		seen++
		got, ok := f.Get(&subject{&in.Claim, &in.Candidate, &in.Fleet})
		if want := regosandbox.Value(v.Interface()); !ok || ast.Compare(got.Term().Value, want.Value) != 0 {
			t.Errorf("%v: %v, want %v", path, got.Term(), want)
		}
		if f.Plain != (v.Kind() == reflect.String || v.Kind() == reflect.Int64) || f.Text != (v.Kind() == reflect.String) {
			t.Errorf("%v: Plain %v, Text %v", path, f.Plain, f.Text)
		}
	}
	walk(reflect.ValueOf(in), nil)
	if seen != len(fields) {
		t.Errorf("%d fields are read, and %d exist", len(fields), seen)
	}
}

func TestTheRankingIsCutAndCounted(t *testing.T) {
	policy := compiled(t, rego("allow := true\nscore := input.candidate.cores % 7\n"))
	var candidates []*PreparedCandidate
	for i := range 500 {
		candidates = append(candidates, NewCandidate(Candidate{Name: fmt.Sprintf("s%03d", i), Cores: int64(i)}))
	}
	all, err := policy.Rank(t.Context(), Claim{}, candidates, Fleet{}, 500)
	if err != nil || len(all.Ranked) != 500 || all.Allowed != 500 {
		t.Fatal(err, len(all.Ranked))
	}
	head, err := policy.Select(t.Context(), Claim{}, candidates, Fleet{})
	if err != nil || len(head.Ranked) != MaxRanked || head.Allowed != 500 || !reflect.DeepEqual(head.Ranked, all.Ranked[:MaxRanked]) {
		t.Error(err, head.Ranked)
	}
	if none, err := policy.Rank(t.Context(), Claim{}, candidates, Fleet{}, 0); err != nil || none.Ranked != nil || none.Allowed != 500 {
		t.Error(err, none)
	}
}

// A table of verdicts grows and, at its bound, forgets; places of a former generation are found out anew.
func TestManyClasses(t *testing.T) {
	policy := compiled(t, rego("allow if input.candidate.cores % 3 > 0\nscore := input.candidate.memoryGiB\n"))
	var candidates []*PreparedCandidate
	for i := range MaxCandidates {
		candidates = append(candidates, NewCandidate(Candidate{Name: fmt.Sprintf("s%05d", i), Cores: int64(i), MemoryGiB: int64(i)}))
	}
	for range 2 {
		got, err := policy.Select(context.Background(), Claim{}, candidates, Fleet{})
		if err != nil || got.Allowed != MaxCandidates*2/3 || got.Ranked[0].Name != "s19999" || got.Rejections[CodeNotAllowed].Count != MaxCandidates/3+1 {
			t.Fatal(err, got.Allowed, got.Ranked[:2], got.Rejections)
		}
		policy.native.places.Store(newPlaces(policy.native.program.Factors))
	}
}
