// SPDX-License-Identifier: Apache-2.0

package propose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var (
	noon    = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	all     = Settings{Faults: []v1alpha1.HardwareFault{"Health", "Disk", "Memory"}, MostPercent: 2}
	broken  = []v1alpha1.FaultyPart{{Fault: "Disk", Name: "D1", Since: metav1.NewTime(noon.Add(-time.Hour))}}
	several = []v1alpha1.FaultyPart{{Fault: "Health", Name: "PSU1", Since: metav1.NewTime(noon)}, {Fault: "Memory", Name: "A1", Since: metav1.NewTime(noon)},
		{Fault: "Memory", Name: "A2", Since: metav1.NewTime(noon)}}
)

// said is a verdict in one line: whether the server is cordoned now, and the condition.
func said(v Verdict) string {
	words := ""
	if v.Cordon {
		words = "cordon "
	}
	if v.Condition == nil {
		return words + "nothing"
	}
	return words + string(v.Condition.Status) + "/" + v.Condition.Reason
}

func TestAServerWithAFault(t *testing.T) {
	for name, c := range map[string]struct {
		server   Server
		settings Settings
		want     string
	}{
		"is cordoned":                                      {Server{Parts: broken}, all, "cordon True/Cordoned"},
		"is left as the manager cordoned it":               {Server{Parts: broken, Unclaimable: true, Ours: true, CordonedAt: noon}, all, "True/Cordoned"},
		"is proposed where a person cordoned it":           {Server{Parts: broken, Unclaimable: true}, all, "True/Proposed"},
		"is proposed while a claim holds it":               {Server{Parts: broken, Claimed: true}, all, "True/Proposed"},
		"is proposed where the policy cordons none":        {Server{Parts: broken}, Settings{Faults: all.Faults}, "True/Proposed"},
		"is not proposed for what the policy left out":     {Server{Parts: broken}, Settings{Faults: []v1alpha1.HardwareFault{"Health"}, MostPercent: 2}, "nothing"},
		"is not proposed where the policy proposes none":   {Server{Parts: broken}, Settings{MostPercent: 2}, "nothing"},
		"is not proposed once a person decided":            {Server{Parts: broken, Decided: true}, all, "nothing"},
		"stays in service where a person uncordoned it":    {Server{Parts: broken, CordonedAt: noon.Add(-time.Minute)}, all, "True/KeptInService"},
		"stays in service for as long as the fault stands": {Server{Parts: broken, CordonedAt: noon.Add(-time.Minute)}, all, "True/KeptInService"},
		"stays in service for a day whatever breaks":       {Server{Parts: several, CordonedAt: noon.Add(-23 * time.Hour)}, all, "True/KeptInService"},
		"is cordoned again for another fault after a day":  {Server{Parts: several, CordonedAt: noon.Add(-24 * time.Hour)}, all, "cordon True/Cordoned"},
		"that went keeps our cordon, and says so":          {Server{Unclaimable: true, Ours: true, CordonedAt: noon}, all, "False/FaultGone"},
		"that went says nothing of a person's cordon":      {Server{Unclaimable: true}, all, "nothing"},
		"that went says nothing once it is uncordoned":     {Server{Ours: true, CordonedAt: noon}, all, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.Name = "s"
			out := Decide(Input{Now: noon, Settings: c.settings, Servers: []Server{c.server}})
			if got := said(out.Verdicts[0]); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if out := Decide(Input{Now: noon, Settings: all, Servers: []Server{{Name: "s", Parts: broken, LeftAlone: true}}}); len(out.Verdicts) > 0 {
		t.Errorf("a server that is to be left alone: %+v", out)
	}
}

// fleet is servers of a model, the first of which are broken since as many hours ago as given; -1 is not broken, 0 is now.
func fleet(model string, servers int, hours ...int) []Server {
	var made []Server
	for i := range servers {
		s := Server{Name: fmt.Sprintf("%s%03d", model, i), Model: model}
		if i < len(hours) && hours[i] >= 0 {
			s.Parts = []v1alpha1.FaultyPart{{Fault: "Disk", Name: "D1", Since: metav1.NewTime(noon.Add(-time.Duration(hours[i]) * time.Hour))}}
		}
		made = append(made, s)
	}
	return made
}

// cordonedAgo marks the last servers as cordoned some hours ago.
func cordonedAgo(servers []Server, hours ...int) []Server {
	for i, h := range hours {
		servers[len(servers)-1-i].CordonedAt = noon.Add(-time.Duration(h) * time.Hour)
	}
	return servers
}

func TestTheLimitOfCordons(t *testing.T) {
	for name, c := range map[string]struct {
		servers []Server
		percent int
		cordons []string
		limited int
		again   time.Duration
	}{
		"one of few":                          {fleet("a", 10, 1, 1, 1), 2, []string{"a000"}, 2, 24 * time.Hour},
		"one of one":                          {fleet("a", 1, 1), 2, []string{"a000"}, 0, 0},
		"two of a hundred":                    {fleet("a", 100, 1, 1, 1), 2, []string{"a000", "a001"}, 1, 24 * time.Hour},
		"one of ninety-nine":                  {fleet("a", 99, 1, 1), 2, []string{"a000"}, 1, 24 * time.Hour},
		"those go first that broke first":     {fleet("a", 100, 1, 5, 3), 2, []string{"a001", "a002"}, 1, 24 * time.Hour},
		"each model has its own":              {append(fleet("a", 10, 1, 1), fleet("b", 10, 1)...), 2, []string{"a000", "b000"}, 1, 24 * time.Hour},
		"one that was cordoned today counts":  {cordonedAgo(fleet("a", 10, 1), 23), 2, nil, 1, time.Hour},
		"one that was yesterday does not":     {cordonedAgo(fleet("a", 10, 1), 24), 2, []string{"a000"}, 0, 0},
		"the first that ends counts":          {cordonedAgo(fleet("a", 100, 1), 4, 20), 2, nil, 1, 4 * time.Hour},
		"a cordon of another model does not":  {append(fleet("a", 10, 1), cordonedAgo(fleet("b", 10), 1)...), 2, []string{"a000"}, 0, 0},
		"a policy that allows more":           {fleet("a", 10, 1, 1, 1), 20, []string{"a000", "a001"}, 1, 24 * time.Hour},
		"a policy that allows all":            {fleet("a", 3, 1, 1, 1), 100, []string{"a000", "a001", "a002"}, 0, 0},
		"a fleet in which nothing is broken":  {fleet("a", 10), 2, nil, 0, 0},
		"more than allowed before the change": {cordonedAgo(fleet("a", 10, 1), 1, 2, 3), 2, nil, 1, 21 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			settings := all
			settings.MostPercent = c.percent
			out := Decide(Input{Now: noon, Settings: settings, Servers: c.servers})
			var cordons []string
			limited := 0
			for _, v := range out.Verdicts {
				if v.Cordon {
					cordons = append(cordons, v.Name)
				}
				if v.Condition != nil && v.Condition.Reason == v1alpha1.ReasonCordonLimit {
					limited++
				}
			}
			var again time.Duration
			if !out.Again.IsZero() {
				again = out.Again.Sub(noon)
			}
			if diff := cmp.Diff(c.cordons, cordons); diff != "" || limited != c.limited || again != c.again {
				t.Errorf("cordons %s, %d limited, again in %s", cordons, limited, again)
			}
		})
	}
}

func TestWhatTheConditionSays(t *testing.T) {
	long := []v1alpha1.FaultyPart{{Fault: "Disk", Name: strings.Repeat("d", 256), Since: metav1.NewTime(noon)}}
	for name, c := range map[string]struct {
		server Server
		want   string
	}{
		"the disk": {Server{Parts: broken}, "Failed disk D1. The manager cordoned the server. Decommission or uncordon it."},
		"two parts and how many more": {Server{Parts: several, Claimed: true}, "Critical part PSU1, Missing memory module A1, and 1 more in status.faultyParts. " +
			"A claim holds the server, so the manager does not cordon it. Decommission it, or mend it."},
		"a machine of which no part is named": {Server{Parts: []v1alpha1.FaultyPart{{Fault: "Health"}}, Unclaimable: true},
			"Critical part that nothing names. The server is cordoned already. Decommission or uncordon it."},
		"a long name is cut": {Server{Parts: long}, "Failed disk " + strings.Repeat("d", 29) + ".... The manager cordoned the server. Decommission or uncordon it."},
		"that a fault went":  {Server{Unclaimable: true, Ours: true}, "The fault is not reported any more. The cordon stays until a person lifts it: uncordon the server."},
	} {
		t.Run(name, func(t *testing.T) {
			out := Decide(Input{Now: noon, Settings: all, Servers: []Server{c.server}})
			if got := out.Verdicts[0].Condition.Message; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	out := Decide(Input{Now: noon, Settings: all, Servers: fleet("a", 10, 2, 1)})
	if got := out.Verdicts[1].Condition.Message; got != "Failed disk D1. The manager cordoned 1 of the model in 24 h, which is the limit. Cordon or decommission the server." {
		t.Error(got)
	}
}
