// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// corpus holds policies that are evaluated natively: what authors write, and where the evaluation could go astray.
var corpus = map[string]string{
	"constants":    "allow := true\nscore := 7\n",
	"false":        "allow := false\n",
	"labels":       "allow if input.candidate.labels.a == \"x\"\nallow if input.candidate.labels[\"b\"] != input.claim.labels.a\n",
	"labels get":   "allow if object.get(input.candidate.labels, \"a\", \"none\") in {\"x\", \"none\"}\n",
	"labels as is": "allow if input.candidate.labels == input.claim.labels\nscore := count(input.candidate.labels)\n",
	"any label":    "allow if input.candidate.labels[input.claim.image] == input.candidate.labels[input.candidate.rack]\n",
	"a default":    "default allow := false\nallow if input.candidate.cores > 1\nallow if input.candidate.gpus < 1\n",
	"arithmetic": `allow := true
score := (input.candidate.cores * input.candidate.memoryGiB - input.candidate.availableSince) + input.candidate.diskBytes.nvme % 7
`,
	"overflow": `allow := true
score := input.candidate.diskBytes.nvme * input.candidate.diskBytes.nvme + input.candidate.availableSince * -1
`,
	"division":         "allow := true\nscore := input.candidate.memoryGiB / input.candidate.cores\n",
	"remainder":        "allow := true\nscore := input.candidate.availableSince % input.candidate.cores\n",
	"fractions":        "allow if input.candidate.cores > 1.5\nscore := input.candidate.cores * 0.1 + 1 / 3\n",
	"written as float": "allow if input.candidate.cores == 2.0\nscore := 1.0 if input.candidate.gpus == 0\n",
	"rounding":         "allow := true\nscore := floor(input.candidate.cores / 3) + ceil(input.candidate.gpus / 2) + round(2.5) + abs(-1)\n",
	"order of kinds":   "allow if input.candidate.labels.a < input.candidate.labels.b\nallow if input.candidate.labels > input.claim.priority\n",
	"conflict":         "allow := true\nscore := 1 if input.candidate.cores > 1\nscore := 2 if input.candidate.gpus > 0\n",
	"agreement":        "allow := true\nscore := 1 if input.candidate.cores > 1\nscore := 1 if input.candidate.gpus > 0\n",
	"else":             "allow := true\nscore := 1 if input.candidate.cores > 1 else := 2 if input.candidate.gpus > 0 else := 3 if input.candidate.rack != \"\"\n",
	"functions": `allow if f(input.candidate.cores, input.claim.priority) > 1
f(a, b) := a + b if a > b
f(a, a) := 7
f(3, _) := 8
default f(_, _) := 0
`,
	"function of false": "allow if not f(input.candidate.cores)\nf(x) := false if x > 1\nf(x) := true if x == 1\nf(x) := 0 if x == 0\n",
	"function with else": "allow := true\nscore := f(input.candidate.cores) + f(f(input.candidate.gpus))\n" +
		"f(x) := x * 2 if x > 1 else := 5 if x == 1 else := x\n",
	"result compared": "allow if f(input.candidate.cores) == 3\nf(x) := 4 if x > 1 else := 3 if x > 0\n",
	"not":             "allow if {\n\tnot input.candidate.labels.a\n\tnot input.candidate.rack == \"r1\"\n}\n",
	"not a helper":    "allow if not big\nbig if input.candidate.cores > 2\nbig if input.candidate.labels.a == \"x\"\n",
	"tenancy": `racks := {"": ["r1", "r2"], "team": {"r2", "r3"}}
allow if input.candidate.rack in racks[input.claim.namespace]
reject contains {"code": "tenant", "message": sprintf("%s may not have rack %s", [input.claim.namespace, input.candidate.rack])} if {
	not input.candidate.rack in racks[input.claim.namespace]
}
`,
	"a table": "weights := {\"r1\": 10, \"r2\": 20.5}\nallow := true\nscore := weights[input.candidate.rack]\n",
	"taints": `allow if some taint in input.candidate.taints
reject contains {"code": "taint", "message": "tainted"} if {
	some taint in input.candidate.taints
	taint.key == "x"
	not tolerated(taint.value)
}
tolerated(value) if {
	some toleration in input.claim.tolerations
	toleration.value == value
}
`,
	"a loop with a value":   "allow := true\nscore := count(taint.key) if some taint in input.candidate.taints\n",
	"a loop over labels":    "allow if {\n\tsome key, value in input.candidate.labels\n\tvalue == \"x\"\n\tstartswith(key, \"a\")\n}\n",
	"a loop over constants": "allow if {\n\tsome word in [\"r1\", \"x\", 3]\n\tword == input.candidate.rack\n}\n",
	"strings": `allow if startswith(lower(input.candidate.model), "x")
allow if contains(concat("-", [input.candidate.rack, input.candidate.zone]), "1-z")
allow if regex.match("^r[0-9]$", input.candidate.rack)
allow if glob.match("r*", [], input.candidate.model)
allow if endswith(trim_prefix(input.candidate.name, "s"), "1")
`,
	"failing functions": "allow if to_number(input.candidate.model) > 1\nallow if input.candidate.cores > 1\n",
	"versions":          "allow if semver.compare(input.candidate.sku, \"1.2.3\") >= 0\n",
	"messages": `allow := true
reject contains {"code": "b", "message": sprintf("%s has %d cores, %v gpus (100%%)", [input.candidate.name, input.candidate.cores, input.candidate.gpus])} if input.candidate.cores < 2
reject contains {"code": "b", "message": "too few"} if input.candidate.cores < 1
reject contains {"code": "a", "message": concat(" ", ["rack", input.candidate.rack])} if input.candidate.gpus > 0
reject contains {"code": "c", "message": words} if {
	words := sprintf("model %s", [input.candidate.model])
	input.candidate.rack == "r2"
}
`,
	"a message that may be absent": `allow := true
reject contains {"code": "b", "message": sprintf("%s", [input.candidate.labels.a])} if input.candidate.cores < 2
`,
	"an empty message":     "allow := true\nreject contains {\"code\": \"b\", \"message\": input.candidate.rack} if input.candidate.cores < 2\n",
	"a message of size":    "allow := true\nreject contains {\"code\": \"b\", \"message\": sprintf(\"%s\", [input.candidate.model])} if input.candidate.cores < 2\n",
	"a code of its own":    "allow if input.candidate.cores > 1\nreject contains {\"code\": \"not-allowed\", \"message\": \"mine\"} if input.candidate.gpus > 0\n",
	"a wrong form":         "allow := [true, 1][input.candidate.gpus]\nscore := [1, \"x\"][input.candidate.cores]\n",
	"score of what is out": "allow if input.candidate.cores > 0\nscore := 10 / input.candidate.cores\n",
	"aliases":              "allow if {\n\tc := input.candidate\n\tl := c.labels\n\tl.a == \"x\"\n\td := c.diskBytes\n\td.nvme > 1\n}\n",
	"objects":              "allow if {\n\tx := {\"a\": input.candidate.cores, \"b\": [input.candidate.rack]}\n\tx.a > 1\n\tx.b[0] == \"r1\"\n}\n",
	"sets":                 "allow if {input.candidate.rack, \"r1\"} == {\"r1\"}\nscore := count({input.candidate.rack, input.candidate.zone} | {\"q\"})\n",
	"rules of rules":       "allow := true\nweights.a := 3\nweights.b := input.candidate.gpus\nscore := weights.a + weights.b\n",
	"a sum": "allow if a > 0\nscore := ((a + b) - 3 * a) + fixed * -2 - a\na := input.candidate.cores\nb := input.candidate.gpus\n" +
		"fixed := input.claim.priority\n",
	"a sum of sums": `allow if a > 0
score := a - 2 * inner
inner := (10 - (b + c)) + (d + e)
a := input.candidate.cores
b := input.candidate.gpus
c := input.candidate.memoryGiB
d := count(input.candidate.rack)
e := count(input.candidate.zone)
`,
	"a sum of what may be undefined": `allow := true
score := a + b
a := input.candidate.cores if input.candidate.gpus > 0
default b := 5
b := 7 if input.candidate.labels.a == "x"
`,
	"a sum that needs what it does not add": "allow := true\nscore := a + 0 * b\na := input.candidate.cores\nb := 1 if input.candidate.gpus > 0\n",
	"a sum on a condition":                  "allow := true\nscore := a if _ = b\na := input.candidate.cores\nb := 1 if input.candidate.gpus > 0\n",
	"a sum of what is no number":            "allow if input.candidate.cores > 0\nscore := a - b\na := [1, {2}, \"x\"][input.candidate.gpus]\nb := [1, {2}, 2.5][input.candidate.cores]\n",
	"a sum that is too large": `allow := true
score := (a + a) - 4 * b
a := input.candidate.diskBytes.nvme
b := input.candidate.availableSince
`,
	"a sum of what conflicts": "allow := true\nscore := a + b\na := 1 if input.candidate.cores > 1\na := 2 if input.candidate.gpus > 0\nb := 1\n",
	"a sum that reads much": `allow := true
score := much + 1
much := count(input.candidate.rack) + few if input.candidate.cores > 0
few := 1 if {
	input.candidate.gpus > 0
	input.candidate.memoryGiB > 0
	input.candidate.zone != ""
	input.candidate.model != ""
	input.candidate.health == "OK"
} else := 2
`,
	"the fleet": "allow := true\nscore := object.get(input.fleet.totalByRack, input.candidate.rack, -1) - object.get(input.fleet.claimedByZone, \"z1\", 0)\n",
	"time":      "allow if input.fleet.now - input.candidate.availableSince > 86400\nscore := input.fleet.today - input.candidate.availableDay\n",
	"minimum":   "allow := true\nscore := min([input.candidate.cores, 3]) + max({input.candidate.gpus, 1}) + sum([1, input.candidate.gpus])\n",
	"many turns": "list := [" + strings.Repeat("1, 2, 3, ", 22) + "4]\nallow if {\n\tsome a in list\n\tsome b in list\n" +
		"\ta + b == input.candidate.cores * 2\n}\n",
	"many factors": `allow if input.candidate.cores > 0
score := a + b + c + d + e + f + g + h + i
a := input.candidate.cores
b := input.candidate.gpus
c := count(input.candidate.rack)
d := count(input.candidate.zone)
e := count(input.candidate.model)
f := count(input.candidate.labels)
g := input.candidate.availableDay
h := input.candidate.memoryGiB
i := count(input.candidate.taints)
`,
}

// outside holds policies of which some rule is interpreted.
var outside = map[string]string{
	"a wrong code":      "allow := true\nreject contains {\"code\": concat(\" \", [\"Not\", input.candidate.rack]), \"message\": \"mine\"} if input.candidate.gpus > 0\n",
	"a comprehension":   "allow if count([t | some t in input.candidate.taints; t.key == \"x\"]) == 0\n",
	"every":             "allow if every t in input.candidate.taints { t.key != \"x\" }\n",
	"with":              "allow if big with input.candidate.cores as 3\nbig if input.candidate.cores > 2\n",
	"a set of rules":    "allow if count(reject) == 0\nreject contains {\"code\": \"a\", \"message\": input.candidate.name} if input.candidate.cores > 1\n",
	"the candidate":     "allow if f(input.candidate)\nf(c) if c.cores > 1\n",
	"calls that double": "allow if f12(input.candidate.cores) > 3\nf0(x) := x + 1\n" + doubling(12),
	"computed codes":    "allow := true\nreject contains {\"code\": input.candidate.rack, \"message\": \"m\"} if input.candidate.rack != \"\"\n",
}

// slow are the policies that take the interpreter a hundred times as long as the others: some inputs have to do for them.
var slow = map[string]bool{"many turns": true, "calls that double": true}

// check tries a policy with as many inputs as -rapid.checks says, or some of them.
func check(t *testing.T, name string, policy *Policy) {
	t.Helper()
	if slow[name] {
		checks := flag.Lookup("rapid.checks")
		before := checks.Value.String()
		n, err := strconv.Atoi(before)
		if err != nil {
			t.Fatal(err)
		}
		set := func(to string) {
			if err := checks.Value.Set(to); err != nil {
				t.Fatal(err)
			}
		}
		set(strconv.Itoa(n/20 + 1))
		defer set(before)
	}
	rapid.Check(t, func(r *rapid.T) {
		claim, fleet := drawClaim(r)
		alike(r, policy, claim, drawCandidates(r), fleet)
	})
}

// doubling are functions each of which calls the one before twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d(x) := f%d(x) + f%d(x + %d)\n", i+1, i, i, i)
	}
	return b.String()
}

func drawCandidates(r *rapid.T) []*PreparedCandidate {
	word := rapid.SampledFrom([]string{"", "a", "b", "x", "r1", "r2", "z1", "1.2.4", "7"})
	words := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "", "r1"}), word, 0, 3)
	small, large := rapid.Int64Range(0, 3), rapid.SampledFrom([]int64{0, 1, -1, 86399, 1767225600, 8e12, 1 << 62, -(1 << 63)})
	var all []*PreparedCandidate
	for i := range rapid.IntRange(0, 6).Draw(r, "servers") {
		c := Candidate{Name: fmt.Sprintf("s%d", i), Labels: words.Draw(r, "labels"), Model: word.Draw(r, "model"), SKU: word.Draw(r, "sku"),
			Cores: small.Draw(r, "cores"), GPUs: small.Draw(r, "gpus"), MemoryGiB: rapid.SampledFrom([]int64{0, 256, 2048}).Draw(r, "memory"),
			Rack: word.Draw(r, "rack"), Zone: word.Draw(r, "zone"), Health: rapid.SampledFrom([]string{"OK", "Warning", "Critical"}).Draw(r, "health"),
			AvailableSince: large.Draw(r, "since"), DiskBytes: DiskBytes{NVMe: large.Draw(r, "bytes")}}
		for range rapid.IntRange(0, 2).Draw(r, "taints") {
			c.Taints = append(c.Taints, Taint{word.Draw(r, "key"), word.Draw(r, "value"), "NoBind"})
		}
		if rapid.IntRange(0, 20).Draw(r, "long") == 0 {
			c.Model = strings.Repeat("x", rapid.IntRange(900, 1100).Draw(r, "length"))
		}
		all = append(all, NewCandidate(c))
	}
	return all
}

func drawClaim(r *rapid.T) (Claim, Fleet) {
	word := rapid.SampledFrom([]string{"", "a", "x", "r1", "team"})
	claim := Claim{Namespace: word.Draw(r, "namespace"), Name: "c", Image: word.Draw(r, "image"), Priority: rapid.Int64Range(0, 3).Draw(r, "priority"),
		Labels: rapid.MapOfN(word, word, 0, 2).Draw(r, "claim labels")}
	for range rapid.IntRange(0, 2).Draw(r, "tolerations") {
		claim.Tolerations = append(claim.Tolerations, Toleration{Key: word.Draw(r, "key"), Value: word.Draw(r, "value")})
	}
	number := rapid.Int64Range(0, 9)
	return claim, Fleet{Now: rapid.SampledFrom([]int64{0, 1767225600, 1767312000}).Draw(r, "now"), Total: number.Draw(r, "total"),
		TotalByRack:   rapid.MapOfN(word, number, 0, 3).Draw(r, "by rack"),
		ClaimedByRack: rapid.MapOfN(word, number, 0, 3).Draw(r, "claimed by rack"), ClaimedByZone: map[string]int64{"z1": 2},
		FreeByZone: map[string]int64{"z1": 1}, NamespaceByRack: rapid.MapOfN(word, number, 0, 3).Draw(r, "the namespace's by rack")}
}

// sameFailure compares what policies fail with for a server by server and words. Which rules read what lasts is not known of those that are
// interpreted.
var sameFailure = cmp.Options{
	cmp.Comparer(func(a, b CandidateError) bool { return a.Server == b.Server && fmt.Sprint(a.Err) == fmt.Sprint(b.Err) }),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Lasting" }, cmp.Ignore()),
}

// alike holds the policy against the interpreter: for all candidates together, and for each.
func alike(t interface {
	Fatalf(format string, args ...any)
}, policy *Policy, claim Claim, candidates []*PreparedCandidate, fleet Fleet,
) {
	ctx, cancel := regosandbox.Bounded(context.Background(), math.MaxInt64) // counted: a slow machine interrupts nothing
	defer cancel()
	interpreted := policy.Interpreted()
	want, wantErr := interpreted.Select(ctx, claim, candidates, fleet)
	for range 2 { // the second time, places are known
		got, err := policy.Select(ctx, claim, candidates, fleet)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("error %v, and the interpreter says %v", err, wantErr)
		}
		if diff := cmp.Diff(want, got, sameFailure); diff != "" {
			t.Fatalf("- interpreted + native\n%s", diff)
		}
	}
	for _, c := range candidates {
		want, wantErr := interpreted.Judge(ctx, claim, c, fleet)
		got, err := policy.Judge(ctx, claim, c, fleet)
		if diff := cmp.Diff(want, got, sameFailure); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%s: %v, %v\n%s", c.Name(), err, wantErr, diff)
		}
	}
}

func TestNativeEvaluationIsTheInterpreters(t *testing.T) {
	bodies := map[string]map[string][]byte{"the default policy": bundled(t, "selection.rego")}
	for name, body := range corpus {
		bodies[name] = rego(body)
	}
	for name, files := range bodies {
		t.Run(name, func(t *testing.T) {
			policy, found := Compile(files)
			if policy == nil || !policy.IsNative() {
				t.Fatal("not native:", found)
			}
			check(t, name, policy)
		})
	}
}

func TestInterpretationByClassIsThatOfEach(t *testing.T) {
	for name, body := range outside {
		t.Run(name, func(t *testing.T) {
			policy, found := Compile(rego(body))
			if policy == nil || policy.IsNative() || len(found) == 0 || found.Err() != nil {
				t.Fatal("not interpreted:", found)
			}
			check(t, name, policy)
		})
	}
}
