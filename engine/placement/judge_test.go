// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/selection"
)

func TestJudge(t *testing.T) {
	c := &selection.Candidate{Name: "a", Labels: map[string]string{"type": "m2", "rack": "x"}, MemoryGiB: 512, Model: "R750", Health: "OK", Rack: "r1"}
	for name, k := range map[string]struct {
		text string
		want Judgement
	}{
		"a condition that holds":    {"where: server.memoryGiB >= 512", Judgement{Accepted: true}},
		"a condition that does not": {"where: server.memoryGiB > 512", Judgement{Code: CodePlacement, Message: "the claim's placement asks where server.memoryGiB > 512"}},
		"a label that is not there is an error": {`where: server.labels["gpu"] != "h100"`, Judgement{Code: CodeError,
			Message: `where of the claim's placement cannot be evaluated: no such key: gpu (server.labels["gpu"] != "h100")`}},
		"the same by a point":                {`where: server.labels.gpu != "h100"`, Judgement{Code: CodeError, Message: `where of the claim's placement cannot be evaluated: no such key: gpu (server.labels.gpu != "h100")`}},
		"label() of one is empty":            {`where: label("gpu") != "h100"`, Judgement{Accepted: true}},
		"an error that does not decide":      {`where: server.labels["gpu"] == "h100" || server.rack == "r1"`, Judgement{Accepted: true}},
		"a division by what is not known":    {"where: server.memoryGiB / server.cores > 1", Judgement{Code: CodeError, Message: "where of the claim's placement cannot be evaluated: division by zero (server.memoryGiB / server.cores > 1)"}},
		"an error of what only CEL computes": {`where: -server.memoryGiB / server.gpus < 1`, Judgement{Code: CodeError, Message: `where of the claim's placement cannot be evaluated: division by zero (-server.memoryGiB / server.gpus < 1)`}},
		"the first alternative that matches": {"alternatives: [{selector: {matchLabels: {type: m1}}}, {where: server.gpus > 0}, {selector: {matchLabels: {type: m2}}, where: server.memoryGiB > 1}, {}]",
			Judgement{Accepted: true, Alternative: 2}},
		"no alternative":                               {"alternatives: [{where: server.gpus > 0}]", Judgement{Code: CodePlacement, Message: "no alternative of the claim's placement matches"}},
		"an error is no reason for the next":           {"alternatives: [{where: 1 / server.gpus > 0}, {}]", Judgement{Code: CodeError, Message: "alternatives[0] of the claim's placement cannot be evaluated: division by zero (1 / server.gpus > 0)"}},
		"an error behind the first that matches":       {"alternatives: [{}, {where: 1 / server.gpus > 0}]", Judgement{Accepted: true}},
		"an error behind a selector that does not":     {"alternatives: [{selector: {matchLabels: {type: m1}}, where: 1 / server.gpus > 0}, {}]", Judgement{Accepted: true, Alternative: 1}},
		"a where that is false hides what comes after": {"where: server.gpus > 0\npreferred: [{weight: 1, where: 1 / server.gpus > 0}]", Judgement{Code: CodePlacement, Message: "the claim's placement asks where server.gpus > 0"}},
		"the weights of what holds are added": {`preferred: [{weight: 10, where: server.health == "OK"}, {weight: -3, where: server.model.startsWith("R")}, {weight: 50, where: server.gpus > 0}]`,
			Judgement{Accepted: true, Score: 7}},
		"a preference that cannot be evaluated is not one that does not hold": {"preferred: [{weight: 10, where: server.gpus == 0}, {weight: 1, where: 1 / server.gpus > 0}]",
			Judgement{Code: CodeError, Message: "preferred[1] of the claim's placement cannot be evaluated: division by zero (1 / server.gpus > 0)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(k.want, compiled(t, k.text).Judge(c)); diff != "" {
				t.Error(diff)
			}
		})
	}
	var none *Placement
	if diff := cmp.Diff(Judgement{Accepted: true}, none.Judge(c)); diff != "" {
		t.Error(diff)
	}
}

func TestSort(t *testing.T) {
	fleet := []*selection.Candidate{
		{Name: "d", Rack: "r1", GPUs: 8}, {Name: "c", Rack: "r1"}, {Name: "b", Rack: "r2"}, {Name: "a", Rack: "", GPUs: 1}, {Name: "e", Rack: "r3", GPUs: 2, Cores: 4},
	}
	counts := map[string]int64{"r1": 0, "r2": 1, "r3": 0}
	for name, c := range map[string]struct {
		text  string
		want  Sorted
		taken int
	}{
		"where": {"where: server.gpus > 1", Sorted{Groups: [][]int32{{0, 4}},
			Rejections: map[string]selection.Rejection{"placement": {Count: 3, Message: "the claim's placement asks where server.gpus > 1"}}}, 0},
		"alternatives share the servers out": {"alternatives: [{where: server.gpus > 4}, {where: server.gpus > 0}]", Sorted{Groups: [][]int32{{0}, {3, 4}},
			Rejections: map[string]selection.Rejection{"placement": {Count: 2, Message: "no alternative of the claim's placement matches"}}}, 0},
		"an alternative without servers is passed over": {"alternatives: [{where: server.gpus > 40}, {}]", Sorted{Groups: [][]int32{nil, {0, 1, 2, 3, 4}},
			Rejections: map[string]selection.Rejection{}}, 1},
		"no alternative has any": {"alternatives: [{where: server.gpus > 40}]", Sorted{Groups: [][]int32{{}},
			Rejections: map[string]selection.Rejection{"placement": {Count: 5, Message: "no alternative of the claim's placement matches"}}}, -1},
		"scores": {"preferred: [{weight: 3, where: server.gpus > 1}, {weight: -1, where: server.cores > 0}]", Sorted{Groups: [][]int32{{0, 1, 2, 3, 4}},
			Scores: []int32{3, 0, 0, 0, 2}, Rejections: map[string]selection.Rejection{}}, 0},
		"spread": {"spread: {key: rack, claims: {}}", Sorted{Groups: [][]int32{{0, 1, 4}},
			Rejections: map[string]selection.Rejection{"spread": {Count: 2, Message: "it has no rack (the fact server.rack), by which the claim is spread"}}}, 0},
		"each server under one code, with the message of the first name": {"where: 8 / server.gpus > 1\nspread: {key: rack, claims: {}}", Sorted{Groups: [][]int32{{4}},
			Rejections: map[string]selection.Rejection{
				"placement":       {Count: 1, Message: "the claim's placement asks where 8 / server.gpus > 1"},
				"placement-error": {Count: 2, Message: "where of the claim's placement cannot be evaluated: division by zero (8 / server.gpus > 1)"},
				"spread":          {Count: 1, Message: "it has no rack (the fact server.rack), by which the claim is spread"}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := compiled(t, c.text).Sort(len(fleet), func(i int) *selection.Candidate { return fleet[i] }, counts)
			if diff := cmp.Diff(c.want, got); diff != "" || got.Taken() != c.taken {
				t.Errorf("takes group %d\n%s", got.Taken(), diff)
			}
		})
	}
	var none *Placement
	if got := none.Sort(2, func(i int) *selection.Candidate { return fleet[i] }, nil); len(got.Groups[0]) != 2 || len(got.Rejections) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSpreadAllows(t *testing.T) {
	for name, c := range map[string]struct {
		skew   int
		place  string
		counts map[string]int64
		want   string
	}{
		"the first claim may go anywhere":                     {1, "r1", map[string]int64{"r1": 0, "r2": 0}, ""},
		"a place as empty as the emptiest":                    {1, "r2", map[string]int64{"r1": 1, "r2": 0}, ""},
		"a place that is ahead of the emptiest":               {1, "r1", map[string]int64{"r1": 1, "r2": 0}, "its rack has 1 of the claims that count and the emptiest (r2) has 0; with this one it would exceed maxSkew 1"},
		"all places are level again":                          {1, "r1", map[string]int64{"r1": 3, "r2": 3}, ""},
		"a larger skew":                                       {2, "r1", map[string]int64{"r1": 1, "r2": 0}, ""},
		"a place without a count is empty":                    {1, "r3", map[string]int64{"r1": 5, "r2": 5}, ""},
		"with one place there is nothing to keep apart":       {1, "r1", map[string]int64{"r1": 7}, ""},
		"without any count the claim may go anywhere":         {1, "r1", nil, ""},
		"a server whose place is not known is no other place": {5, "", map[string]int64{"r1": 0}, "it has no rack (the fact server.rack), by which the claim is spread"},
	} {
		t.Run(name, func(t *testing.T) {
			s := compiled(t, fmt.Sprintf("spread: {key: rack, maxSkew: %d, claims: {}}", c.skew)).Spread()
			if ok, message := s.Allows(c.place, c.counts); ok != (c.want == "") || message != c.want {
				t.Errorf("%t %q", ok, message)
			}
		})
	}
}

func TestSpreadTellsPlacesAndClaims(t *testing.T) {
	c := &selection.Candidate{Rack: "r1", Zone: "z1", Region: "eu", Labels: map[string]string{"rack": "other", "example.com/room": "7"}}
	for key, want := range map[string]string{"rack": "r1", "zone": "z1", "region": "eu", "example.com/room": "7", "hall": ""} {
		if got := compiled(t, "spread: {claims: {}, key: "+key+"}").Spread().Place(c); got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	of := compiled(t, "spread: {key: rack, claims: {matchLabels: {app: db}}}\ngang: {name: g, size: 3}").Spread()
	if !of.Counts(map[string]string{"app": "db"}, "") || of.Counts(nil, "g") || of.CountsOwn(nil) || !of.CountsOwn(map[string]string{"app": "db"}) {
		t.Error("claims are those of the selector")
	}
	gang := compiled(t, "spread: {key: rack}\ngang: {name: g, size: 3}").Spread()
	if !gang.Counts(nil, "g") || gang.Counts(nil, "h") || gang.Counts(nil, "") || !gang.CountsOwn(nil) {
		t.Error("claims are those of the gang")
	}
}

func TestMuster(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []int64
		want  Muster
		says  string
	}{
		"all are there":     {[]int64{3, 3, 3}, Complete, ""},
		"one is missing":    {[]int64{3, 3}, Incomplete, "2 of its 3 members exist"},
		"nobody is there":   {nil, Incomplete, "none of its members exists"},
		"one is too many":   {[]int64{2, 2, 2}, Contradictory, "3 claims say that they are members, and its size is 2"},
		"they do not agree": {[]int64{3, 2}, Contradictory, "its members give different sizes: 2 and 3"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, message := MusterOf(c.sizes); got != c.want || message != c.says {
				t.Errorf("%d %q", got, message)
			}
		})
	}
}

func TestEveryCodeFactFunctionFieldAndLimitIsDocumented(t *testing.T) {
	for _, c := range Codes() {
		if !strings.HasSuffix(c.Meaning, ".") || !strings.HasSuffix(c.Remedy, ".") {
			t.Errorf("%+v", c)
		}
	}
	for _, f := range Facts() {
		if !strings.HasSuffix(f.Doc, ".") || f.Type == "" || !strings.HasPrefix(f.Name, "server.") || strings.HasSuffix(f.Name, ".") {
			t.Errorf("%+v", f)
		}
	}
	for _, f := range Functions() {
		if !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%+v", f)
		}
	}
	for _, f := range Fields() {
		if !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%+v", f)
		}
	}
}
