// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"strings"
	"testing"
	"time"
)

func TestWhichChecksFail(t *testing.T) {
	facts := &Facts{State: "Reserved", Power: "On", Health: "Warning", Labels: map[string]string{"rack": "r1"},
		Conditions: map[string]string{"Healthy": "False"}, ClaimLabels: map[string]string{"drained": "true"},
		Maintenance: MaintenanceFacts{Priority: 5, Policy: "Enforced", Annotations: map[string]string{"why": "fan"}}}
	for name, c := range map[string]struct{ must, want string }{
		"one that holds does not":            {`server.health != "Critical" && server.power == "On"`, ""},
		"one that does not hold does":        {`server.health == "OK"`, `server.health == "OK" does not hold`},
		"a condition of the server":          {`server.conditions["Healthy"] == "True"`, "does not hold"},
		"a label that there is not":          {`server.labels["zone"] == "a"`, "no such key: zone"},
		"a label that there might be":        {`"zone" in server.labels`, "does not hold"},
		"a label of the claim":               {`claim.labels["drained"] == "true"`, ""},
		"an annotation of no claim":          {`claim.annotations["x"] == ""`, "cannot be evaluated"},
		"what is said of the maintenance":    {`maintenance.priority > 4 && maintenance.policy == "Enforced" && maintenance.annotations["why"] == "fan"`, ""},
		"what only CEL itself can evaluate":  {`server.labels["rack"].matches("^r[0-9]$")`, ""},
		"an error that only CEL can word":    {`server.labels["zone"].matches("^r[0-9]$")`, "no such key: zone"},
		"a division by zero is not false":    {`10 / (maintenance.priority - 5) == 1`, "division by zero"},
		"a side that decides outweighs that": {`server.state == "Reserved" || server.labels["zone"] == "a"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Policy{Pre: []Check{{Name: "c", Must: must(t, c.must), Within: time.Minute}}}
			got := ""
			for _, f := range p.FailingPre(facts) {
				if got = f.String(); f.Within != time.Minute {
					t.Error(f.Within)
				}
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Error(got)
			}
		})
	}
}

func TestAConditionThatIsNoneIsRefused(t *testing.T) {
	for name, text := range map[string]string{"a fact that there is not": "server.rack == 1", "a number": "1 + 1", "nothing": "",
		"a look at many values": `server.labels.exists(k, k == "a")`, "another type": `maintenance.priority == "high"`} {
		t.Run(name, func(t *testing.T) {
			if _, err := Condition(text); err == nil {
				t.Error("it is accepted")
			}
		})
	}
}

func TestHowManyServersALimitAllows(t *testing.T) {
	for name, c := range map[string]struct {
		most    Amount
		servers int
		want    int
	}{
		"a number":                     {Amount{Number: 3}, 1000, 3},
		"a percentage is rounded down": {Amount{Percent: 2}, 149, 2},
		"and never less than one":      {Amount{Percent: 2}, 10, 1},
		"all":                          {Amount{Percent: 100}, 7, 7},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.most.Of(c.servers); got != c.want {
				t.Error(got)
			}
		})
	}
}

func TestWhereAServerCounts(t *testing.T) {
	labels := map[string]string{labelZone: "z1", labelRegion: "eu", "row": "7"}
	for name, c := range map[string]struct {
		limit  Limit
		place  string
		covers bool
	}{
		"all together":                 {Limit{}, "", true},
		"by rack":                      {Limit{Per: PerRack}, "r1", true},
		"by zone":                      {Limit{Per: PerZone}, "z1", true},
		"by region":                    {Limit{Per: PerRegion}, "eu", true},
		"by a label":                   {Limit{Per: "row"}, "7", true},
		"by a label that it lacks":     {Limit{Per: "room"}, "", false},
		"without a claim":              {Limit{Per: PerNamespace}, "", false},
		"a selector that fits":         {Limit{MatchLabels: Selector{"row": "7"}}, "", true},
		"a selector that does not fit": {Limit{MatchLabels: Selector{"row": "8"}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if place, covers := c.limit.Place(labels, "r1", ""); place != c.place || covers != c.covers {
				t.Error(place, covers)
			}
		})
	}
}

func TestAServerIsInTheFirstWaveThatSelectsIt(t *testing.T) {
	p := &Policy{Waves: []Wave{{Name: "canary", MatchLabels: Selector{"canary": "true"}}, {Name: "eu", MatchLabels: Selector{"region": "eu"}}}}
	for name, c := range map[string]struct {
		labels map[string]string
		want   int
	}{
		"of two the first":           {map[string]string{"canary": "true", "region": "eu"}, 0},
		"the one that fits":          {map[string]string{"region": "eu"}, 1},
		"without one it is the last": {nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.Wave(c.labels); got != c.want {
				t.Error(got)
			}
		})
	}
}
