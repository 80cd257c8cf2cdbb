// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/policies"
)

// fleetOf is servers s1 to sN, of which the first are claimed.
func fleetOf(n, claimed int) map[string]object {
	servers := map[string]object{}
	for i := 1; i <= n; i++ {
		o := object{}
		o.Metadata.Name, o.Spec.SystemUUID = fmt.Sprintf("s%d", i), fmt.Sprintf("U%d", i)
		if i <= claimed {
			o.Spec.ServerClaimRef = &reference{"load", fmt.Sprintf("c%d", i)}
		}
		servers[o.Metadata.Name] = o
	}
	return servers
}

func TestHalfOfTheMaintenancesAreOfClaimedServers(t *testing.T) {
	for name, c := range map[string]struct {
		n, servers, claimed int
		want                string
	}{
		"where there are as many of both":    {4, 6, 3, "s4 s1 s5 s2"},
		"unless no server is claimed":        {3, 3, 0, "s1 s2 s3"},
		"unless few are claimed":             {4, 5, 1, "s2 s1 s3 s4"},
		"unless nearly all are claimed":      {3, 3, 2, "s3 s1 s2"},
		"and one alone is of an unclaimed":   {1, 2, 1, "s2"},
		"and there are no more than asked":   {2, 9, 4, "s5 s1"},
		"and no more than there are servers": {5, 2, 1, "s2 s1"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for i, one := range plan(c.n, fleetOf(c.servers, c.claimed)) {
				got = append(got, one.server)
				if want := "load/" + maintenanceName(i); one.maintenance != want {
					t.Errorf("maintenance %s, want %s", one.maintenance, want)
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

func TestAVisitIsOverOnceItsMaintenanceIsGoneAndItsServerHasLeft(t *testing.T) {
	one := plan(1, fleetOf(1, 0))[0]
	v := newVisits([]*visit{one})
	v.serverIs("s1", available, second(0), second(1))
	v.serverIs("s1", inMaintenance, second(1), second(2))
	v.serverIs("other", inMaintenance, second(1), second(2))
	v.maintenanceGone(one.maintenance, second(3))
	if one.over() {
		t.Fatal("it is over while the server is in state Maintenance")
	}
	v.serverIs("s1", "Initial", second(3), second(4))
	v.serverIs("s1", available, second(4), second(5))
	if !one.over() || !one.left.Equal(second(4)) || !one.decided.Equal(second(3)) || !one.gone.Equal(second(3)) {
		t.Errorf("over %t, left %s, gone %s", one.over(), one.left, one.gone)
	}
	if s := v.standing(nil); !s.reached() {
		t.Error(s.String())
	}
}

func TestTheDriverAnswersEachOnce(t *testing.T) {
	v := newVisits(plan(2, fleetOf(2, 1)))
	claims, maintenances := map[string]object{"load/c1": {}}, map[string]object{"load/maintenance-00001": {}, "load/maintenance-00000": {}}
	due := func() (text string) {
		approve, remove := v.due(claims, maintenances)
		for _, one := range approve {
			text += "+" + one.server
		}
		for _, one := range remove {
			text += "-" + one.server
		}
		return text
	}
	if got := due(); got != "" {
		t.Errorf("at first: %s", got)
	}
	asks, served := object{}, object{}
	asks.Metadata.Labels, served.Status.State = map[string]string{neededLabel: "true"}, stateServed
	claims["load/c1"], maintenances["load/maintenance-00000"] = asks, served
	if got := due(); got != "+s1-s2" {
		t.Errorf("asked and served: %s", got)
	}
	if got := due(); got != "" {
		t.Errorf("again: %s", got)
	}
}

func TestWritesBelongToTheMaintenanceOrFollowIt(t *testing.T) {
	const metal = "metal.ironcore.dev"
	one := plan(1, fleetOf(1, 1))[0]
	one.left, one.gone = second(10), second(12)
	entry := func(at int, resource, subresource, namespace, name string) string {
		line := auditEntry(at, "m", "patch", metal, resource, subresource, `"code":200`)
		return strings.Replace(line, `"name":"x"`, fmt.Sprintf(`"namespace":%q,"name":%q`, namespace, name), 1)
	}
	log := entry(9, "servers", "status", "", "s1") + entry(11, "servers", "status", "", "s1") + entry(9, "servers", "", "", "other") +
		entry(11, "serverclaims", "", "load", "c1") + entry(11, "serverclaims", "status", "load", "c1") +
		entry(12, "servermaintenances", "", "load", "maintenance-00000") + entry(11, "serverbootconfigurations", "", "system", "s1-wipe") +
		entry(30, "servers", "", "", "s1") + strings.Replace(entry(9, "servers", "", "", "s1"), `"m"`, `"somebody"`, 1)
	tallies, err := readVisits(strings.NewReader(log), "m", "system", interval{second(0), second(20)}, []*visit{one})
	if err != nil {
		t.Fatal(err)
	}
	during := map[string]int{"patch servers.metal.ironcore.dev/status": 1, "patch serverclaims.metal.ironcore.dev": 1,
		"patch servermaintenances.metal.ironcore.dev": 1}
	after := map[string]int{"patch servers.metal.ironcore.dev/status": 1, "patch serverclaims.metal.ironcore.dev/status": 1,
		"patch serverbootconfigurations.metal.ironcore.dev": 1}
	if !maps.Equal(tallies[0].during, during) || !maps.Equal(tallies[0].after, after) {
		t.Errorf("got %v", tallies[0])
	}
}

func TestAServerLeavesByTheFirstWriteAfterTheManagerDecidedSo(t *testing.T) {
	status := func(at, code int) visitWrite {
		return visitWrite{audited{Resource: groupOf(kindServer), Subresource: "status", Code: code}, second(at)}
	}
	writes := []visitWrite{status(1, 200), status(4, 409), status(5, 200), status(7, 200), {audited{Resource: groupOf(kindServer), Code: 200}, second(4)}}
	for name, c := range map[string]struct{ decided, left, want time.Time }{
		"as it says":                       {second(3), second(9), second(5)},
		"where it does not say, when seen": {time.Time{}, second(9), second(9)},
		"where no write is found, as seen": {second(8), second(9), second(9)},
		"and never later than it was seen": {second(6), second(6), second(6)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&visit{decided: c.decided, left: c.left}).leaves(writes); !got.Equal(c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWhatMaintenancesCostIsSharedOut(t *testing.T) {
	s := sheet{Audited: map[audited]int{{User: userManager, Verb: "patch", Resource: "x"}: 9}}
	tallies := []tally{{map[string]int{"a": 4}, map[string]int{"b": 1}}, {map[string]int{"a": 3}, nil}}
	c := costOf(figures{visits: []*visit{{}, {}}, passes: passes{count: 2, seconds: 0.5}}, &s, tallies)
	if c.Claimed != nil || c.Unclaimed.WritesEach != 3.5 || c.Unclaimed.WritesMost != 4 || c.Unclaimed.FollowingEach != 0.5 ||
		c.Unclaimed.Writes["a"] != 3.5 || c.OtherWrites != 1 || *c.SchedulerPasses != 2 {
		t.Errorf("got %+v, unclaimed %+v", c, c.Unclaimed)
	}
}

func TestOnlyTheSchedulersPassesCount(t *testing.T) {
	const text = `controller_runtime_reconcile_total{controller="server",result="success"} 7
controller_runtime_reconcile_total{controller="maintenance-scheduler",result="success"} 2
controller_runtime_reconcile_total{controller="maintenance-scheduler",result="requeue_after"} 3
controller_runtime_reconcile_time_seconds_sum{controller="maintenance-scheduler"} 1.5
controller_runtime_reconcile_time_seconds_count{controller="maintenance-scheduler"} 5
`
	if got, err := readPasses(strings.NewReader(text)); err != nil || got != (passes{5, 1.5}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestTheDriversBundleIsTheDefaultWithOneLimit(t *testing.T) {
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	text, err := limited(files["bundle.yaml"], 50)
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(files["bundle.yaml"], &want); err != nil {
		t.Fatal(err)
	}
	if got["name"] != bundleName {
		t.Errorf("its name is %v", got["name"])
	}
	if have, shipped := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(have, shipped) {
		t.Errorf("it has %v", have)
	}
	if _, err := limited([]byte("name: x"), 50); err == nil {
		t.Error("a bundle without the setting was taken")
	}
}
