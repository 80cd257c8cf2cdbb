// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"strings"
	"testing"
)

// free is a server that every claim may have; change alters it.
func free(change func(*ServerState)) ServerState {
	s := ServerState{Name: "a", Labels: map[string]string{"rack": "r1"}, State: "Available", Power: "Off"}
	if change != nil {
		change(&s)
	}
	return s
}

func TestEligible(t *testing.T) {
	gpuTaint := []Taint{{"gpu", "h100", "NoBind"}}
	for name, c := range map[string]struct {
		claim         ClaimSpec
		server        ServerState
		code, message string
	}{
		"a claim without wishes gets a free server": {ClaimSpec{}, free(nil), "", ""},
		"a claim gets the server that it names":     {ClaimSpec{ServerRef: "a"}, free(nil), "", ""},
		"a claim gets no other server":              {ClaimSpec{ServerRef: "b"}, free(nil), CodeServerRef, "the claim names another server"},
		"a selector that matches lets it pass":      {ClaimSpec{Selector: &Selector{MatchLabels: map[string]string{"rack": "r1"}}}, free(nil), "", ""},
		"with both, the selector must match too": {ClaimSpec{ServerRef: "a", Selector: &Selector{MatchLabels: map[string]string{"rack": "r2"}}}, free(nil),
			CodeSelector, "the claim's selector does not match its labels"},
		"a server that is being deleted is not given away": {ClaimSpec{}, free(func(s *ServerState) { s.Deleting = true }), CodeDeleting, "it is being deleted"},
		"a claimed server is not given away":               {ClaimSpec{}, free(func(s *ServerState) { s.Claimed = true }), CodeClaimed, "another claim has it"},
		"a server in another state is not given away":      {ClaimSpec{}, free(func(s *ServerState) { s.State = "Cleanup" }), CodeState, "its state is Cleanup and not Available"},
		"a server without state is not given away":         {ClaimSpec{}, free(func(s *ServerState) { s.State = "" }), CodeState, "its state is unknown and not Available"},
		"a cordoned server is not given away":              {ClaimSpec{}, free(func(s *ServerState) { s.Unclaimable = true }), CodeUnclaimable, "it is cordoned (spec.unclaimable)"},
		"a server in maintenance is not given away": {ClaimSpec{}, free(func(s *ServerState) { s.InService = true }), CodeMaintenance,
			"it is handed to a maintenance (spec.serverMaintenanceRef)"},
		"a dirty server is not given away":   {ClaimSpec{}, free(func(s *ServerState) { s.Dirty = true }), CodeDirty, "it holds data of an earlier holder"},
		"a running server is not given away": {ClaimSpec{}, free(func(s *ServerState) { s.Power = "On" }), CodePower, "its power state is On and not Off"},
		"unknown power is not Off":           {ClaimSpec{}, free(func(s *ServerState) { s.Power = "" }), CodePower, "its power state is unknown and not Off"},
		"a taint keeps claims away":          {ClaimSpec{}, free(func(s *ServerState) { s.Taints = gpuTaint }), CodeTaint, "the claim does not tolerate its taint gpu=h100:NoBind"},
		"a tolerated taint does not": {ClaimSpec{Tolerations: []Toleration{{Key: "gpu", Operator: "Exists"}}}, free(func(s *ServerState) { s.Taints = gpuTaint }),
			"", ""},
		"what the claim asked for is named before what will pass": {ClaimSpec{ServerRef: "b"}, free(func(s *ServerState) { s.Claimed = true }),
			CodeServerRef, "the claim names another server"},
		"a maintenance is named before the state that it has the server in": {ClaimSpec{}, free(func(s *ServerState) { s.State, s.InService = "Maintenance", true }),
			CodeMaintenance, "it is handed to a maintenance (spec.serverMaintenanceRef)"},
		"a state of maintenance that is over": {ClaimSpec{}, free(func(s *ServerState) { s.State = "Maintenance" }),
			CodeState, "its state is Maintenance and not Available"},
		"a server that is to be parked is not given away": {ClaimSpec{}, free(func(s *ServerState) { s.Parking = true }), CodeState, "it is to be parked"},
		"one that is on its way tells its state first": {ClaimSpec{}, free(func(s *ServerState) { s.State, s.Parking = "Cleanup", true }),
			CodeState, "its state is Cleanup and not Available"},
		"a cordon is named before what will pass": {ClaimSpec{}, free(func(s *ServerState) { s.State, s.Unclaimable = "Cleanup", true }),
			CodeUnclaimable, "it is cordoned (spec.unclaimable)"},
	} {
		t.Run(name, func(t *testing.T) {
			ok, code, message := Eligible(c.claim, c.server)
			if ok != (c.code == "") || code != c.code || message != c.message {
				t.Errorf("got %v, %q, %q; want %q, %q", ok, code, message, c.code, c.message)
			}
		})
	}
}

func TestWhatStaysBehindTheFirstCheckIsToldToo(t *testing.T) {
	taint := Taint{Key: "broken", Effect: "NoBind"}
	for name, c := range map[string]struct {
		server     ServerState
		tolerates  bool
		want, then string
	}{
		"one that is held and tainted":                 {free(func(s *ServerState) { s.Claimed, s.Taints = true, []Taint{taint} }), false, "claimed", "taint"},
		"one that is held, cordoned and tainted":       {free(func(s *ServerState) { s.Claimed, s.Unclaimable, s.Taints = true, true, []Taint{taint} }), false, "claimed", "unclaimable taint"},
		"a taint that is tolerated is in nobody's way": {free(func(s *ServerState) { s.Claimed, s.Taints = true, []Taint{taint} }), true, "claimed", ""},
		"one that rests and is tainted":                {free(func(s *ServerState) { s.State, s.Taints = "Parked", []Taint{taint} }), false, "not-available", "taint"},
		"a cordon by itself is not told twice":         {free(func(s *ServerState) { s.Unclaimable = true }), false, "unclaimable", ""},
		"a taint by itself is not told twice":          {free(func(s *ServerState) { s.Taints = []Taint{taint} }), false, "taint", ""},
		"what passes by itself is not told":            {free(func(s *ServerState) { s.Claimed, s.State, s.Power, s.Dirty = true, "Reserved", "On", true }), false, "claimed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			claim := ClaimSpec{}
			if c.tolerates {
				claim.Tolerations = []Toleration{{Operator: "Exists"}}
			}
			_, code, _ := Eligible(claim, c.server)
			var then []string
			for _, o := range Behind(code, claim.Tolerations, c.server) {
				if then = append(then, o.Code); o.Message == "" {
					t.Errorf("%s says nothing", o.Code)
				}
			}
			if got := strings.Join(then, " "); code != c.want || got != c.then {
				t.Errorf("%s, then %q; want %s, then %q", code, got, c.want, c.then)
			}
		})
	}
}

func TestTolerations(t *testing.T) {
	taint := Taint{"gpu", "h100", "NoBind"}
	for name, c := range map[string]struct {
		toleration Toleration
		taint      Taint
		tolerated  bool
	}{
		"Equal with key and value":                       {Toleration{"gpu", "Equal", "h100", "NoBind"}, taint, true},
		"Equal is the default":                           {Toleration{Key: "gpu", Value: "h100"}, taint, true},
		"Equal with another value does not":              {Toleration{"gpu", "Equal", "a100", "NoBind"}, taint, false},
		"Equal with another key does not":                {Toleration{"cpu", "Equal", "h100", "NoBind"}, taint, false},
		"Equal with no key does not":                     {Toleration{Operator: "Equal", Value: "h100"}, taint, false},
		"Exists ignores the value":                       {Toleration{Key: "gpu", Operator: "Exists"}, taint, true},
		"Exists with another key does not":               {Toleration{Key: "cpu", Operator: "Exists"}, taint, false},
		"Exists with no key tolerates everything":        {Toleration{Operator: "Exists"}, taint, true},
		"another effect does not":                        {Toleration{Key: "gpu", Operator: "Exists", Effect: "Evict"}, taint, false},
		"an unknown operator does not":                   {Toleration{Key: "gpu", Operator: "exists"}, taint, false},
		"a taint without effect is NoBind":               {Toleration{Key: "gpu", Operator: "Exists", Effect: "NoBind"}, Taint{Key: "gpu"}, true},
		"a taint without effect is NoBind and not Evict": {Toleration{Key: "gpu", Operator: "Exists", Effect: "Evict"}, Taint{Key: "gpu"}, false},
		"an Evict taint keeps nobody from binding":       {Toleration{}, Taint{"gpu", "", "Evict"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, found := Untolerated([]Taint{c.taint}, []Toleration{c.toleration}); found == c.tolerated {
				t.Errorf("tolerated: %v, want %v", !found, c.tolerated)
			}
		})
	}
}

func TestSelectorMatches(t *testing.T) {
	labels := map[string]string{"rack": "r1", "gpu": ""}
	one := func(key, operator string, values ...string) *Selector {
		return &Selector{MatchExpressions: []Expression{{key, operator, values}}}
	}
	for name, c := range map[string]struct {
		selector *Selector
		matches  bool
	}{
		"no selector matches":                       {nil, true},
		"an empty selector matches":                 {&Selector{}, true},
		"equal labels match":                        {&Selector{MatchLabels: map[string]string{"rack": "r1"}}, true},
		"another value does not":                    {&Selector{MatchLabels: map[string]string{"rack": "r2"}}, false},
		"an absent label is not an empty one":       {&Selector{MatchLabels: map[string]string{"zone": ""}}, false},
		"In matches one of its values":              {one("rack", "In", "r0", "r1"), true},
		"In does not match an absent label":         {one("zone", "In", "z1"), false},
		"NotIn does not match its values":           {one("rack", "NotIn", "r1"), false},
		"NotIn matches an absent label":             {one("zone", "NotIn", "z1"), true},
		"Exists matches an empty value":             {one("gpu", "Exists"), true},
		"Exists does not match an absent label":     {one("zone", "Exists"), false},
		"DoesNotExist matches an absent label":      {one("zone", "DoesNotExist"), true},
		"DoesNotExist does not match a present one": {one("rack", "DoesNotExist"), false},
		"all parts must match": {&Selector{MatchLabels: map[string]string{"rack": "r1"},
			MatchExpressions: []Expression{{"gpu", "Exists", nil}, {"zone", "Exists", nil}}}, false},
		"an invalid part matches nothing": {one("zone", "NotIn"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.selector.Matches(labels); got != c.matches {
				t.Errorf("matches: %v, want %v", got, c.matches)
			}
		})
	}
}

func TestSelectorValidate(t *testing.T) {
	for want, s := range map[string]*Selector{
		"matchLabels has an empty key; name the label that must match":                     {MatchLabels: map[string]string{"": "x"}},
		"matchExpressions[0]: the key is empty; name the label that must match":            {MatchExpressions: []Expression{{"", "Exists", nil}}},
		"matchExpressions[0]: operator In needs at least one value":                        {MatchExpressions: []Expression{{"a", "In", nil}}},
		"matchExpressions[0]: operator Exists takes no values; use In or NotIn":            {MatchExpressions: []Expression{{"a", "Exists", []string{"x"}}}},
		`matchExpressions[0]: operator "Gt" is not one of In, NotIn, Exists, DoesNotExist`: {MatchExpressions: []Expression{{"a", "Gt", []string{"1"}}}},
	} {
		t.Run(want, func(t *testing.T) {
			if err := s.Validate(); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	var none *Selector
	if err := none.Validate(); err != nil {
		t.Error(err)
	}
}

func TestEveryCodeIsDocumentedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Codes() {
		if c.Meaning == "" || c.Remedy == "" || seen[c.Code] {
			t.Errorf("%+v", c)
		}
		seen[c.Code] = true
	}
	for _, code := range []string{CodeServerRef, CodeSelector, CodeDeleting, CodeClaimed, CodeState, CodeUnclaimable, CodeMaintenance, CodeDirty, CodePower, CodeTaint, CodeNotAllowed} {
		if !seen[code] {
			t.Errorf("%s is not documented", code)
		}
	}
}

func TestWhatPassesByItselfDoesNotMakeAServerInfeasible(t *testing.T) {
	busy := ServerState{Name: "a", Labels: map[string]string{"k": "v"}, State: "Error", Power: "On", Claimed: true, Unclaimable: true,
		InService: true, Dirty: true, Deleting: true}
	tainted := busy
	tainted.Taints = []Taint{{Key: "t"}}
	for name, c := range map[string]struct {
		claim  ClaimSpec
		server ServerState
		code   string
	}{
		"a server in use":                     {ClaimSpec{}, busy, ""},
		"one that is named":                   {ClaimSpec{ServerRef: "a"}, busy, ""},
		"another":                             {ClaimSpec{ServerRef: "b"}, busy, CodeServerRef},
		"labels that do not match":            {ClaimSpec{Selector: &Selector{MatchLabels: map[string]string{"k": "w"}}}, busy, CodeSelector},
		"a taint that nothing tolerates":      {ClaimSpec{}, tainted, CodeTaint},
		"a taint that the claim puts up with": {ClaimSpec{Tolerations: []Toleration{{Operator: "Exists"}}}, tainted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if ok, code, _ := Feasible(c.claim, c.server); code != c.code || ok != (c.code == "") {
				t.Errorf("%t %s", ok, code)
			}
		})
	}
}
