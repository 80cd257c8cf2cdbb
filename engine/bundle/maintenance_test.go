// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/maintenance"
)

const bundleHead = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: a\nversion: 1.0.0\nsettings:\n"

func TestWhatABundleSaysOfMaintenanceIsRead(t *testing.T) {
	m, found := parseManifest([]byte(bundleHead + `  maintenance:
    unclaimed: AfterRelease
    approval: PerClaim
    enforcedNotice: 30m
    expected: 2h
    windows:
    - {name: nights, matchLabels: {zone: a}, when: "maintenance.priority < 10", opens: "0 22 * * 1-5", lasts: 8h, zone: Europe/Berlin, least: 30m}
    limits:
    - {name: racks, per: rack, most: 1}
    - {name: fleet, matchLabels: {pool: x}, most: 2%}
    waves:
    - {name: canary, matchLabels: {canary: "true"}, pause: 1h}
    checks:
      pre: [{name: healthy, must: 'server.health != "Critical"', within: 10m}]
      post: [{name: back-on, must: 'server.power == "On"'}]
    stop: {failed: 3, overdue: 2}
  releaseGrace: 5m
`))
	if found != nil {
		t.Fatal(found)
	}
	p := m.Settings.Maintenance
	if !p.AfterRelease || !p.PerClaim || p.EnforcedNotice != 30*time.Minute || p.Expected != 2*time.Hour || p.ReleaseGrace != 5*time.Minute {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff([]maintenance.Limit{{Name: "racks", Per: "rack", Most: maintenance.Amount{Number: 1}},
		{Name: "fleet", MatchLabels: maintenance.Selector{"pool": "x"}, Most: maintenance.Amount{Percent: 2}}}, p.Limits); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]maintenance.Wave{{Name: "canary", MatchLabels: maintenance.Selector{"canary": "true"}, Pause: time.Hour}}, p.Waves); diff != "" {
		t.Error(diff)
	}
	night := time.Date(2026, time.November, 27, 23, 0, 0, 0, time.UTC)
	opening := p.Window(&maintenance.Facts{Labels: map[string]string{"zone": "a"}}, night, p.Expected)
	if !opening.Open || opening.Name != "nights" || !opening.Closes.Equal(night.Add(6*time.Hour)) {
		t.Errorf("%+v", opening)
	}
	facts := &maintenance.Facts{Health: "Critical", Power: "Off"}
	if pre, post := p.FailingPre(facts), p.FailingPost(facts); len(pre) != 1 || pre[0].Within != 10*time.Minute || len(post) != 1 || post[0].Within != 0 {
		t.Error(pre, post)
	}
	if p.Stop != (maintenance.Stop{Failed: 3, Overdue: 2}) {
		t.Error(p.Stop)
	}
}

func TestWhatMaintenanceLeavesOutIsTheDefault(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		limits   int
	}{
		"nothing said":     {"  releaseGrace: 0s\n", 3},
		"another key":      {"  maintenance: {expected: 1h}\n", 3},
		"no limits at all": {"  maintenance: {limits: []}\n", 0},
		"one of its own":   {"  maintenance: {limits: [{name: a, most: 5}]}\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, found := parseManifest([]byte(bundleHead + c.settings))
			p := m.Settings.Maintenance
			if found != nil || len(p.Limits) != c.limits || p.Expected != time.Hour || p.EnforcedNotice != 15*time.Minute || p.AfterRelease || p.PerClaim {
				t.Errorf("%v %+v", found, p)
			}
		})
	}
}

func TestAMistakeInMaintenanceIsFoundWhereItIs(t *testing.T) {
	for name, c := range map[string]struct{ settings, want string }{
		"a key that there is not":        {"  maintenance: {window: []}\n", `6:17: error: maintenance has no key "window"`},
		"a word that there is not":       {"  maintenance: {unclaimed: Never}\n", `6:28: error: unclaimed cannot be "Never"`},
		"an expected time of nothing":    {"  maintenance: {expected: 0s}\n", "6:27: error: expected cannot be 0s"},
		"a window that never opens":      {"  maintenance: {windows: [{name: a, opens: 0 0 30 2 *, lasts: 1h}]}\n", "never opens"},
		"a window of no zone":            {"  maintenance: {windows: [{name: a, opens: 0 0 * * *, lasts: 1h, zone: Mars}]}\n", `zone cannot be "Mars"`},
		"a window without an end":        {"  maintenance: {windows: [{name: a, opens: 0 0 * * *}]}\n", "a row of windows does not say lasts"},
		"a window that lasts weeks":      {"  maintenance: {windows: [{name: a, opens: 0 0 * * *, lasts: 200h}]}\n", "write a duration from 1m to 168h"},
		"a row without a name":           {"  maintenance: {waves: [{pause: 1h}]}\n", "a row of waves has no name"},
		"a name that is there twice":     {"  maintenance: {waves: [{name: a}, {name: a}]}\n", `waves has the name "a" twice`},
		"a name that is none":            {"  maintenance: {waves: [{name: A b}]}\n", `name cannot be "A b"`},
		"a limit of nothing":             {"  maintenance: {limits: [{name: a, most: 0}]}\n", `most cannot be "0"`},
		"a limit of more than all":       {"  maintenance: {limits: [{name: a, most: 101%}]}\n", `most cannot be "101%"`},
		"a limit without a number":       {"  maintenance: {limits: [{name: a}]}\n", "does not say most"},
		"a limit by no label":            {"  maintenance: {limits: [{name: a, per: '!', most: 1}]}\n", `per cannot be "!"`},
		"a label that is none":           {"  maintenance: {waves: [{name: a, matchLabels: {'a b': c}}]}\n", `"a b" is no key of a label`},
		"a check of no fact":             {"  maintenance: {checks: {pre: [{name: a, must: server.helth == 'OK'}]}}\n", `6:48: error: must: there is no fact "server.helth" (did you mean server.health?)`},
		"a check that is no condition":   {"  maintenance: {checks: {pre: [{name: a, must: server.health}]}}\n", "yields string, not a boolean"},
		"a check without a condition":    {"  maintenance: {checks: {post: [{name: a}]}}\n", "a row of post does not say must"},
		"a stop below nothing":           {"  maintenance: {stop: {failed: -1}}\n", `failed cannot be "-1"`},
		"a row that is no mapping":       {"  maintenance: {waves: [canary]}\n", "must be a mapping"},
		"a list that is none":            {"  maintenance: {waves: canary}\n", "waves must be a list"},
		"no mapping at all":              {"  maintenance: often\n", "maintenance must be a mapping"},
		"a window for nothing":           {"  maintenance: {windows: [{name: a, opens: 0 0 * * *, lasts: 30m}]}\n", "6:3: warning: the window a is never open for 1h"},
		"a fault that there is not":      {"  decommission: {propose: [Fan]}\n", `propose cannot be "Fan"`},
		"more than all servers":          {"  decommission: {cordonMostPercent: 101}\n", `cordonMostPercent cannot be "101"`},
		"a list where a fault is named":  {"  decommission: {propose: Disk}\n", "propose must be a list"},
		"more windows than anybody has":  {"  maintenance: {waves: [" + strings.Repeat("{name: a}, ", 51) + "]}\n", "waves has 51 rows"},
		"a condition that is a list":     {"  maintenance: {windows: [{name: a, when: [], opens: 0 0 * * *, lasts: 1h}]}\n", "when must be text"},
		"a time zone that is a mapping":  {"  maintenance: {windows: [{name: a, zone: {}, opens: 0 0 * * *, lasts: 1h}]}\n", "zone must be text"},
		"an expression that is a number": {"  maintenance: {windows: [{name: a, opens: 5, lasts: 1h}]}\n", `opens cannot be "5"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := parseManifest([]byte(bundleHead + c.settings))
			text := ""
			for _, d := range found {
				text += d.String() + "\n"
			}
			if !strings.Contains(text, c.want) {
				t.Errorf("found %s", text)
			}
		})
	}
}

func FuzzMaintenance(f *testing.F) {
	f.Add("windows: [{name: a, opens: 0 0 * * *, lasts: 1h, zone: Europe/Berlin, when: server.power == 'On'}]")
	f.Add("limits: [{name: a, per: rack, most: 2%}]\n    waves: [{name: b, matchLabels: {c: d}, pause: 1h}]\n    stop: {failed: 1}")
	f.Fuzz(func(t *testing.T, text string) {
		m, found := parseManifest([]byte(bundleHead + "  maintenance:\n    " + text + "\n"))
		if m.Settings.Maintenance == nil {
			t.Fatal("there is no policy")
		}
		if found.HasErrors() {
			return
		}
		facts := &maintenance.Facts{}
		m.Settings.Maintenance.Window(facts, time.Unix(1793000000, 0), time.Hour)
		m.Settings.Maintenance.FailingPre(facts)
	})
}
