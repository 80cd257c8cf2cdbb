// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/maintenance"
)

func TestWhatABundleLeavesOutIsFilled(t *testing.T) {
	fill := Files{BundleFile: []byte("theirs"), LifecycleFile: []byte("theirs"), ScenariosFile: []byte("theirs"), SelectionFile: []byte("theirs"),
		"selection_test.rego": []byte("theirs"), AdmissionFile: []byte("theirs"), "admission_test.rego": []byte("theirs"),
		MACPrefixesFile: []byte("theirs")}
	theirs := slices.DeleteFunc(slices.Sorted(maps.Keys(fill)), func(name string) bool { return name == BundleFile })
	for name, c := range map[string]struct {
		own, want []string
	}{
		"bundle.yaml is the author's alone":                     {nil, theirs},
		"a lifecycle comes without the scenarios of another":    {[]string{LifecycleFile}, []string{"admission.rego", "admission_test.rego", "macprefixes.yaml", "selection.rego", "selection_test.rego"}},
		"a policy comes without the tests of another":           {[]string{SelectionFile}, []string{"admission.rego", "admission_test.rego", "lifecycle.yaml", "macprefixes.yaml", "scenarios.yaml"}},
		"scenarios of one's own are about the lifecycle filled": {[]string{ScenariosFile}, []string{"admission.rego", "admission_test.rego", "lifecycle.yaml", "macprefixes.yaml", "selection.rego", "selection_test.rego"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := Files{BundleFile: []byte("own")}
			for _, own := range c.own {
				files[own] = []byte("own")
			}
			all := files.Filled(fill)
			var taken []string
			for _, file := range slices.Sorted(maps.Keys(all)) {
				if string(all[file]) == "theirs" {
					taken = append(taken, file)
				}
			}
			if diff := cmp.Diff(c.want, taken); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithACopyOfAFileComesWhatProvesIt(t *testing.T) {
	theirs := Files{LifecycleFile: []byte("a"), ScenariosFile: []byte("b"), SelectionFile: []byte("c"), "selection_test.rego": []byte("d")}
	own := Files{LifecycleFile: []byte("a"), SelectionFile: []byte("c")}
	if diff := cmp.Diff(theirs, own.Filled(theirs)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsFilledIsPartOfTheDigest(t *testing.T) {
	files := Files{BundleFile: []byte("own")}
	first := files.Filled(Files{LifecycleFile: []byte("one")}).Digest()
	if second := files.Filled(Files{LifecycleFile: []byte("another")}).Digest(); first == second {
		t.Error("two bundles that decide otherwise have the same digest")
	}
}

func TestTheLargestBundleIsUnpackedAgain(t *testing.T) {
	files := Files{BundleFile: []byte(strings.Repeat("<", MaxFileBytes)), LifecycleFile: []byte(strings.Repeat("&", MaxFileBytes))}
	if found := tooLarge(files); found != nil {
		t.Fatal(found)
	}
	packed, err := files.Pack()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Unpack(packed)
	if err != nil || again.Digest() != files.Digest() {
		t.Fatalf("it comes back as something else (error %v)", err)
	}
	files[LifecycleFile] = append(files[LifecycleFile], '&')
	if found := tooLarge(files); !found.HasErrors() {
		t.Error("a file that is too large passes")
	}
}

func TestSettingsThatAreLeftOutAreTheSafeOnes(t *testing.T) {
	m, found := parseManifest([]byte("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: a\nversion: 1.0.0\n"))
	if found != nil {
		t.Fatal(found)
	}
	want := Settings{Sanitization: SanitizationRequired, FirstSeen: FirstSeenObserve, BMCTLS: TLSVerify, Health: Health{CriticalStops: StopsInspection},
		ReleasePower: PowerAfterGrace, ReleaseShutdown: 2 * time.Minute,
		Coverage: CoverageFloor{Rego: 80},
		Claims:   Claims{Priority: Priority{Max: 1000, Ageing: 10 * time.Minute}, OnUnsatisfiable: "Warn"},
		Boot:     Boot{BootOf: BootOf{FirstWord: 20 * time.Minute, Mode: "UEFI"}, Ignition: IgnitionAlways}, Maintenance: maintenance.Default(),
		Wipe:         Wipe{Hidden: HiddenReport, Removable: RemovableLeave, Identity: IdentityReport},
		Decommission: Decommission{Propose: []string{"Health", "Disk", "Memory"}, CordonMostPercent: 2}}
	if diff := cmp.Diff(want, m.Settings); diff != "" {
		t.Error(diff)
	}
}

func TestWhenTheMachineOfAClaimThatEndedIsPoweredOffIsRead(t *testing.T) {
	const head = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: a\nversion: 1.0.0\n"
	for name, c := range map[string]struct {
		settings string
		power    string
		shutdown time.Duration
		found    string
	}{
		"after the grace where nothing is said": {"", PowerAfterGrace, 2 * time.Minute, ""},
		"at once where that is asked for":       {"settings: {releasePower: Immediate}\n", PowerImmediate, 2 * time.Minute, ""},
		"by force, where no time is granted":    {"settings: {releasePower: Immediate, releaseShutdown: 0s}\n", PowerImmediate, 0, ""},
		"another word is an error, and cuts nothing": {"settings: {releasePower: Now}\n", PowerAfterGrace, 2 * time.Minute,
			"setting-word"},
	} {
		m, found := parseManifest([]byte(head + c.settings))
		if m.Settings.ReleasePower != c.power || m.Settings.ReleaseShutdown != c.shutdown {
			t.Errorf("%s: %s within %s", name, m.Settings.ReleasePower, m.Settings.ReleaseShutdown)
		}
		var code string
		if len(found) > 0 {
			code = found[0].Code
		}
		if code != c.found {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

func TestWhetherLabelsShowTheHardwareIsRead(t *testing.T) {
	const head = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: a\nversion: 1.0.0\n"
	for name, c := range map[string]struct {
		settings string
		off      bool
		found    string
	}{
		"they do where nothing is said":       {"", false, ""},
		"they do where labels says nothing":   {"settings: {labels: {}}\n", false, ""},
		"they do where that is asked for":     {"settings: {labels: {inventory: true}}\n", false, ""},
		"they do not where that is asked for": {"settings: {labels: {inventory: false}}\n", true, ""},
		"a word that is neither is an error":  {"settings: {labels: {inventory: none}}\n", true, "yaml-type"},
		"a misspelt setting is an error":      {"settings: {labels: {inventry: false}}\n", false, "yaml-unknown-key"},
	} {
		t.Run(name, func(t *testing.T) {
			m, found := parseManifest([]byte(head + c.settings))
			var code string
			if len(found) > 0 {
				code = found[0].Code
			}
			if code != c.found || c.found == "" && m.Settings.NoInventoryLabels != c.off {
				t.Errorf("off %t, found %v", m.Settings.NoInventoryLabels, found)
			}
		})
	}
}

func TestWhatPriorityAClaimIsGrantedIsRead(t *testing.T) {
	m, found := parseManifest([]byte("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: a\nversion: 1.0.0\n" +
		"settings:\n  claims:\n    priority: {max: 10, namespaces: {urgent: 500, batch: -5}, ageing: 1h}\n"))
	if found != nil {
		t.Fatal(found)
	}
	p := m.Settings.Claims.Priority
	for _, c := range []struct {
		name, namespace string
		asked, want     int64
	}{
		{"no more than the bundle's most", "team", 100, 10},
		{"less than that as it is", "team", -100, -100},
		{"a namespace that may have more", "urgent", 100, 100},
		{"a namespace that may have less", "batch", 0, -5},
	} {
		if got := p.Grant(c.namespace, c.asked); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
	if got := p.Aged(-5, 150*time.Minute); got != -3 {
		t.Errorf("after two hours and a half it has %d, want -3", got)
	}
}

func TestAPriorityOutOfBoundsIsRefusedAtItsPlace(t *testing.T) {
	_, found := parseManifest([]byte("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: a\nversion: 1.0.0\n" +
		"settings:\n  claims:\n    priority:\n      max: 2000\n      ageing: never\n      most: 1\n"))
	var got []string
	for _, d := range found {
		got = append(got, fmt.Sprintf("%d:%d %s", d.Line, d.Column, d.Code))
	}
	want := []string{"8:12 setting-number", "9:15 setting-duration", "10:7 yaml-unknown-key"}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsForTheRolloutAreRead(t *testing.T) {
	m, found := parseManifest([]byte("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: a.b-c\nversion: 1.0.0\n" +
		"settings:\n  canary: {maxHalts: 3, maxErrors: 5}\n  coverage: {rego: 90, effects: 50}\n"))
	if found != nil {
		t.Fatal(found)
	}
	if m.Settings.Canary != (Canary{MaxHalts: 3, MaxErrors: 5}) || m.Settings.Coverage != (CoverageFloor{Rego: 90, Effects: 50}) {
		t.Errorf("got %+v", m.Settings)
	}
}

func TestWhatANamespaceMayHaveIsRead(t *testing.T) {
	const head = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: a\nversion: 1.0.0\nsettings:\n  claims:\n"
	m, found := parseManifest([]byte(head + "    onUnsatisfiable: Deny\n    quota: {default: 5, namespaces: {team: 20, guests: 0}}\n"))
	if found != nil {
		t.Fatal(found)
	}
	if got := m.Settings.Claims.OnUnsatisfiable; got != UnsatisfiableDeny {
		t.Errorf("onUnsatisfiable is %s", got)
	}
	for namespace, want := range map[string]int{"team": 20, "guests": 0, "else": 5} {
		if got, ok := m.Settings.Claims.Quota.Limit(namespace); got != want || !ok {
			t.Errorf("%s may have %d (%t), want %d", namespace, got, ok, want)
		}
	}
	if _, ok := (Quota{Namespaces: map[string]int{"team": 1}}).Limit("else"); ok {
		t.Error("a namespace that nobody speaks of has a bound")
	}
	for text, code := range map[string]string{
		"    onUnsatisfiable: Refuse\n":                 "setting-word",
		"    quota: {default: -1}\n":                    "setting-number",
		"    quota: {namespaces: {team: \"5\"}}\n":      "setting-number",
		"    quota: {defaults: 5}\n":                    "yaml-unknown-key",
		"    quota: {namespaces: {a: 1, a: 2}}\n":       "yaml-duplicate-key",
		"    quota: {namespaces: {Team: 5}}\n":          "setting-namespace",
		"    quota: {namespaces: {\"team-*\": 5}}\n":    "setting-namespace",
		"    quota: {namespaces: {a.b: 5}}\n":           "setting-namespace",
		"    priority: {namespaces: {Not Valid!: 5}}\n": "setting-namespace",
	} {
		if _, found := parseManifest([]byte(head + text)); len(found) != 1 || found[0].Code != code {
			t.Errorf("%s: %v, want %s", text, found, code)
		}
	}
}
