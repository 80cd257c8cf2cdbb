// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func compiled(t testing.TB, text string) *Placement {
	t.Helper()
	p, found := Parse(File, text)
	if p == nil {
		t.Fatal(found)
	}
	return p
}

// whole uses every field.
const whole = `
where: server.memoryGiB >= 512 && server.rack != "r1"
alternatives:
- selector:
    matchLabels: {type: m2}
    matchExpressions: [{key: gpu, operator: In, values: [h100, h200]}]
  where: server.gpus > 0
- selector: {matchExpressions: [{key: old, operator: DoesNotExist}]}
- {}
preferred:
- {weight: 10, where: server.health == "OK"}
- {weight: -5, where: label("noisy") == "true"}
spread: {key: rack, maxSkew: 1, claims: {matchLabels: {app: db}}}
gang: {name: db, size: 3}
`

func TestParseAcceptsEveryField(t *testing.T) {
	p, found := Parse(File, whole)
	if p == nil || len(found) > 0 {
		t.Fatal(found)
	}
	if p.Alternatives() != 3 || !p.Prefers() {
		t.Errorf("%d alternatives, prefers %t", p.Alternatives(), p.Prefers())
	}
	if diff := cmp.Diff(&Gang{Name: "db", Size: 3}, p.Gang()); diff != "" {
		t.Error(diff)
	}
	if s := p.Spread(); s.Key != "rack" || s.MaxSkew != 1 {
		t.Errorf("%+v", s)
	}
}

func TestParseSaysWhereTheMistakeIsAndWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing": {" \n", []string{
			`1:1: error: the placement is empty (take the annotation away, or write one of where, alternatives, preferred, spread, gang) [placement-empty]`}},
		"an empty mapping": {"{}", []string{
			`1:1: error: the placement asks for nothing (take the annotation away, or write one of where, alternatives, preferred, spread, gang) [placement-empty]`}},
		"a list": {"[]", []string{`1:1: error: a placement must be a mapping (write key: value pairs) [yaml-type]`}},
		"a key that does not exist": {"wher: true", []string{
			`1:1: error: a placement has no key "wher" (known keys: where, alternatives, preferred, spread, gang) [yaml-unknown-key]`}},
		"a fact that does not exist": {"where: server.memoryGB >= 1", []string{
			`1:8: error: where: there is no fact "server.memoryGB" (did you mean server.memoryGiB?) [cel-unknown-fact]`}},
		"a word that a fact never has, in the second line of a block": {"where: |\n  server.cores > 1 &&\n  server.health == \"ok\"", []string{
			`3:20: error: where: server.health is never "ok" (it is one of OK, Warning, Critical, Unknown) [cel-enum]`}},
		"a label without quotes": {"where: label(rack) == \"r1\"", []string{
			`1:14: error: where: label() takes one key in quotes (correct the expression; docs/reference/placement.md shows the type of each fact) [cel-invalid]`}},
		"a condition that begins with a quote": {`where: "gpu" in server.labels`, []string{
			`1:8: error: the value begins with a quote, so that YAML takes the next quote for its end (put the whole value in single quotes, such as where: '"gpu" in server.labels') [yaml-quote]`}},
		"a condition that begins with an exclamation mark": {`where: !("gpu" in server.labels)`, []string{
			`1:8: error: the value begins with !, which YAML takes for a tag (put the whole value in single quotes, such as where: '!("gpu" in server.labels)') [yaml-tag]`}},
		"a function that is not on the list": {`where: server.model.matches("R7.*")`, []string{
			`1:28: error: where: there is no function matches() (docs/reference/placement.md lists what an expression may use) [cel-unknown-function]`}},
		"a comprehension": {`where: server.labels.exists(k, k == "a")`, []string{
			`1:22: error: where: exists() is not available: a condition looks at single facts, so that its cost is bounded (ask for a label with "key" in server.labels, and compare its value with label("key")) [cel-comprehension]`}},
		"a number with a fraction": {"where: server.memoryGiB > 1.5", []string{
			`1:25: error: where: > cannot combine int with double (both sides must have the same type) [cel-type]`}},
		"a single =":            {"where: server.memoryGiB = 3", []string{`1:25: error: where: a single = compares nothing (write ==) [cel-syntax]`}},
		"no condition":          {"where: server.memoryGiB", []string{`1:8: error: where: the expression yields int, not a boolean (compare it with something) [cel-not-bool]`}},
		"an empty condition":    {"where: ''", []string{`1:8: error: where: the condition is empty (write a CEL expression that yields true or false) [cel-empty]`}},
		"a list as a condition": {"where: [a]", []string{`1:8: error: where: where must be text (write a condition in CEL) [yaml-type]`}},
		"a condition that is too long": {"where: server.cores > 1" + strings.Repeat(" && server.cores > 1", 60), []string{
			`1:8: error: where: the expression has more than 1024 characters (say less, or use alternatives) [cel-too-long]`}},
		"a condition that is too deep": {"where: server.cores > 1" + strings.Repeat(" + 1", 60), []string{
			`1:8: error: where: the expression is deeper than 32 levels; each sign of a sum is one (say less, or use alternatives) [cel-too-long]`}},
		"a condition that is too dear": {"where: server.model.contains(server.sku)", []string{
			`1:8: error: where: evaluating it may cost 678 units, and at most 500 are allowed (compare with ==, in or startsWith; avoid patterns, and functions within functions) [cel-cost]`}},
		"conditions that are too dear together": {"where: server.model + \"x\" == server.sku\npreferred: [{weight: 1, where: server.sku + \"x\" == server.model}]", []string{
			`1:1: error: evaluating all conditions may cost 1080 units, and at most 500 are allowed (compare with ==, in or startsWith, say the same thing once, and do not join texts) [cel-cost]`}},
		"a document that is too large": {"# " + strings.Repeat("x", MaxBytes), []string{
			`1:1: error: the placement has 4098 bytes, and at most 4096 are read (say less: combine conditions, and ask for one of several values with in) [placement-size]`}},
		"three mistakes in three preferences": {`preferred: [{weight: 0, where: "true"}, {where: "true"}, {weight: "3"}]`, []string{
			`1:22: error: preferred[0]: a weight of 0 changes nothing (write a number above or below zero, or take the preference out) [placement-number]`,
			`1:41: error: preferred[1]: weight is missing (add weight:) [yaml-missing-key]`,
			`1:58: error: preferred[2]: where is missing (add where:) [yaml-missing-key]`,
			`1:67: error: preferred[2]: weight is no such number (write a whole number from -100 to 100, without quotes) [placement-number]`}},
		"weights that add up to too much": {"preferred:" + strings.Repeat("\n- {weight: 100, where: server.gpus > 0}", 11), []string{
			`1:1: error: preferred: the weights can add up to 1100, and at most 1000 is allowed (lower the weights; what counts is how they compare) [placement-number]`}},
		"too many alternatives": {"alternatives: [" + strings.Repeat("{where: server.gpus > 0},", 9) + "]", []string{
			`1:1: error: alternatives: there are 9 alternatives, and at most 8 are read (combine some of them with || and in) [placement-number]`}},
		"no alternatives": {"alternatives: []", []string{`1:1: error: alternatives: alternatives has no entry (take it out) [placement-empty]`}},
		"an alternative behind one that has every server": {"alternatives: [{}, {where: server.gpus > 0}]", []string{
			`1:20: warning: alternatives[1]: this alternative is never reached: the one before it has every server (put the alternative without selector and where last) [placement-no-effect]`}},
		"a selector with a key that no label has, an operator that does not exist, and a value that no label has": {
			"alternatives: [{selector: {matchLabels: {a_: b, c: d e}, matchExpressions: [{key: a, operator: Inn, values: [b]}, {operator: In}]}}]", []string{
				`1:42: error: alternatives[0].selector: "a_" is no key of a label (a key is letters, digits, '-', '_' and '.', at most 63, perhaps behind a domain and a slash) [placement-selector]`,
				`1:52: error: alternatives[0].selector: no label can have the value "d e" (a value is letters, digits, '-', '_' and '.', at most 63) [placement-selector]`,
				`1:77: error: alternatives[0].selector.matchExpressions[0]: operator "Inn" is not one of In, NotIn, Exists, DoesNotExist (write it as in spec.serverSelector) [placement-selector]`,
				`1:115: error: alternatives[0].selector.matchExpressions[1]: key is missing (add key:) [yaml-missing-key]`}},
		"a spread over nobody": {"spread: {key: rack}", []string{
			`1:1: error: spread: it does not say which claims it keeps apart (add claims: with the labels of the claims to keep apart, or gang:) [placement-claims]`}},
		"a spread without a key": {"spread: {claims: {}}", []string{`1:9: error: spread: key is missing (add key:) [yaml-missing-key]`}},
		"a spread by what is no key": {"spread: {key: the rack, claims: {}, maxSkew: 0}", []string{
			`1:15: error: spread: "the rack" is no key of a place (write rack, zone, region or the key of a label) [placement-key]`,
			`1:46: error: spread: maxSkew is no such number (write a whole number from 1 to 1000, without quotes) [placement-number]`}},
		"a spread by a label that is spelled like a fact": {"spread: {key: Rack, claims: {}}", []string{
			`1:15: warning: spread: it goes by the label Rack of servers, not by their rack (did you mean rack?) [placement-key-case]`}},
		"a skew that allows everything": {"gang: {name: db, size: 2}\nspread: {key: rack, maxSkew: 2}", []string{
			`2:1: warning: spread: it has no effect: maxSkew 2 allows all 2 members of the gang in one place (lower maxSkew) [placement-no-effect]`}},
		"a gang with a bad name and of one": {"gang: {name: A_b, size: 1}", []string{
			`1:14: error: gang: "A_b" is no name of a gang (write lower-case letters, digits and dashes, at most 63) [placement-gang]`,
			`1:25: error: gang: size is no such number (write a whole number from 2 to 256, without quotes) [placement-number]`}},
		"an alias": {"where: &a server.gpus > 0\npreferred: [{weight: 1, where: *a}]", []string{
			`2:32: error: the alias *a repeats what is written elsewhere (write the value out here) [yaml-alias]`}},
	} {
		t.Run(name, func(t *testing.T) {
			p, found := Parse(File, c.text)
			var got []string
			for _, d := range found {
				got = append(got, strings.TrimPrefix(d.String(), File+":"))
			}
			if diff := cmp.Diff(c.want, got); diff != "" || (p == nil) != found.HasErrors() {
				t.Errorf("placement %t\n%s", p != nil, diff)
			}
		})
	}
}

func TestAsksIsTheSameForPlacementsThatAskForTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"layout and comments":                {"where: server.gpus > 0 # at least one", "{where: 'server.gpus > 0'}", true},
		"the order of labels":                {"alternatives: [{selector: {matchLabels: {a: x, b: z}}}]", "alternatives: [{selector: {matchLabels: {b: z, a: x}}}]", true},
		"a spread with a warning, and none":  {"gang: {name: a, size: 2}\nspread: {key: Rack}", "gang: {name: a, size: 2}", false},
		"a default that is written out":      {"spread: {key: rack, claims: {}}", "spread: {key: rack, claims: {}, maxSkew: 1}", true},
		"another condition":                  {"where: server.gpus > 0", "where: server.gpus > 1", false},
		"the order of alternatives":          {"alternatives: [{where: server.gpus > 0}, {}]", "alternatives: [{}, {where: server.gpus > 0}]", false},
		"where, and an alternative":          {"where: server.gpus > 0", "alternatives: [{where: server.gpus > 0}]", false},
		"every claim, and those of the gang": {"gang: {name: a, size: 2}\nspread: {key: rack, claims: {}}", "gang: {name: a, size: 2}\nspread: {key: rack}", false},
		"another gang":                       {"gang: {name: a, size: 2}", "gang: {name: b, size: 2}", false},
		"another weight":                     {"preferred: [{weight: 1, where: server.gpus > 0}]", "preferred: [{weight: 2, where: server.gpus > 0}]", false},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := compiled(t, c.a).Asks(), compiled(t, c.b).Asks(); (a == b) != c.same {
				t.Errorf("%q\n%q", a, b)
			}
		})
	}
	var none *Placement
	if none.Asks() != "" || none.Alternatives() != 1 || none.Prefers() || none.Spread() != nil || none.Gang() != nil {
		t.Error("no placement asks for something")
	}
}

func TestACacheSaysWhatParseSays(t *testing.T) {
	var cache Cache
	for range 2 {
		p, found := cache.Parse(whole)
		if p == nil || len(found) > 0 || p.Asks() != compiled(t, whole).Asks() {
			t.Error(p, found)
		}
		if p, found := cache.Parse("where: x"); p != nil || len(found) != 1 {
			t.Error(p, found)
		}
	}
	first, _ := cache.Parse(whole)
	if again, _ := cache.Parse(whole); again != first {
		t.Error("it was compiled again")
	}
	for i := range maxCached/4000 + 1 {
		cache.Parse(fmt.Sprintf("no key %d", i) + strings.Repeat(" ", 4000))
	}
	held := 0
	for text := range cache.recent {
		held += len(text)
	}
	if held > maxCached/2 || held != cache.length || held == 0 {
		t.Errorf("it holds %d bytes and says %d", held, cache.length)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("where: |\n  server.labels[\"a\"] == label(\"b\") ||\n  size(server.model) / server.cores > 3")
	f.Add("where: \"\\U0010FFFF\" in server.labels")
	f.Add("spread: {key: a/b, claims: {matchExpressions: [{key: x, operator: NotIn, values: ['']}]}}")
	f.Fuzz(func(t *testing.T, text string) {
		p, found := Parse(File, text)
		if (p == nil) != found.HasErrors() {
			t.Fatalf("placement %t with %v", p != nil, found)
		}
		lines := strings.Count(text, "\n") + 2
		for _, d := range found {
			if d.Line < 1 || d.Line > lines || d.Column < 1 || d.Code == "" || d.Message == "" {
				t.Errorf("%+v", d)
			}
		}
		if p == nil {
			return
		}
		for _, c := range benchmarkCandidates(3) {
			j := p.Judge(c)
			if j.Accepted != (j.Code == "") || j.Accepted != (j.Message == "") || j.Alternative >= p.Alternatives() || j.Score > MaxScore || j.Score < -MaxScore {
				t.Errorf("%+v", j)
			}
		}
	})
}
