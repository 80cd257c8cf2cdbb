// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.FixedZone("here", 3600))

func until(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

func TestAFreezeFromTheCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		request freezeRequest
		want    policyv1alpha1.Freeze
	}{
		"the fleet, until somebody says otherwise": {
			freezeRequest{level: "Destructive", reason: "why"},
			policyv1alpha1.Freeze{Level: "Destructive", Reason: "why"}},
		"a rack, for a while": {
			freezeRequest{level: "all", reason: "why", selector: "rack=r1", lasts: 2 * time.Hour, bounded: true, name: "n"},
			policyv1alpha1.Freeze{Name: "n", Level: "All", Reason: "why", Until: until(noon.Add(2 * time.Hour)),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "r1"}, MatchExpressions: []metav1.LabelSelectorRequirement{}}}},
		"until a moment":                   {freezeRequest{level: "All", reason: "why", until: "2026-02-01T00:00:00Z"}, policyv1alpha1.Freeze{Level: "All", Reason: "why", Until: until(noon.Add(13 * time.Hour))}},
		"until a moment here":              {freezeRequest{level: "All", reason: "why", until: "2026-01-31 13:30"}, policyv1alpha1.Freeze{Level: "All", Reason: "why", Until: until(noon.Add(90 * time.Minute))}},
		"until a time of today":            {freezeRequest{level: "All", reason: "why", until: "18:00"}, policyv1alpha1.Freeze{Level: "All", Reason: "why", Until: until(noon.Add(6 * time.Hour))}},
		"until a time, which was over now": {freezeRequest{level: "All", reason: "why", until: "06:00"}, policyv1alpha1.Freeze{Level: "All", Reason: "why", Until: until(noon.Add(18 * time.Hour))}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.request.freeze(noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

func TestAFreezeThatMakesNoSense(t *testing.T) {
	for name, c := range map[string]struct {
		request freezeRequest
		want    string
	}{
		"no reason":           {freezeRequest{level: "All"}, "--reason is required"},
		"a long reason":       {freezeRequest{level: "All", reason: strings.Repeat("a", 1025)}, "--reason has 1025 characters"},
		"a long name":         {freezeRequest{level: "All", reason: "r", name: strings.Repeat("a", 64)}, "--name has 64 characters"},
		"no such level":       {freezeRequest{level: "None", reason: "r"}, `--level is "None"; write Maintenance, Destructive or All`},
		"two ends":            {freezeRequest{level: "All", reason: "r", lasts: time.Hour, bounded: true, until: "18:00"}, "--for and --until exclude each other"},
		"an end before now":   {freezeRequest{level: "All", reason: "r", until: "2026-01-31T10:00:00Z"}, "--until 2026-01-31T10:00:00Z is over already"},
		"an end that is none": {freezeRequest{level: "All", reason: "r", until: "tomorrow"}, `--until is "tomorrow"; write 2026-01-31T18:00:00Z`},
		"a negative duration": {freezeRequest{level: "All", reason: "r", lasts: -time.Hour, bounded: true}, "--for must be more than 0; leave it out for a freeze without an end"},
		"no duration at all":  {freezeRequest{level: "All", reason: "r", bounded: true}, "--for must be more than 0; leave it out for a freeze without an end"},
		"a broken selector":   {freezeRequest{level: "All", reason: "r", selector: "a in b"}, "-l: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.request.freeze(noon)
			if !usage.Is(err) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func control(freezes ...policyv1alpha1.Freeze) *policyv1alpha1.FleetControl {
	c := &policyv1alpha1.FleetControl{}
	c.Spec.Freezes = freezes
	return c
}

func names(c *policyv1alpha1.FleetControl) string { return namesOf(c) }

func TestAFreezeIsAdded(t *testing.T) {
	over := policyv1alpha1.Freeze{Name: "over", Level: "All", Until: until(noon.Add(-time.Hour))}
	stands := policyv1alpha1.Freeze{Name: "switch-upgrade", Level: "All", By: "bob", Reason: "switch upgrade"}
	var full []policyv1alpha1.Freeze
	for i := range 64 {
		full = append(full, policyv1alpha1.Freeze{Name: fmt.Sprint(i), Level: "All"})
	}
	for name, c := range map[string]struct {
		there  []policyv1alpha1.Freeze
		freeze policyv1alpha1.Freeze
		names  string
		ended  []string
		err    string
	}{
		"with a name from its reason":      {nil, policyv1alpha1.Freeze{Reason: "Switch upgrade, in rack R1!"}, "switch-upgrade-in-rack-r1", nil, ""},
		"with a name that is not too long": {nil, policyv1alpha1.Freeze{Reason: "the whole row is without cooling since this morning"}, "the-whole-row-is-without-cooling-since", nil, ""},
		"with some name":                   {nil, policyv1alpha1.Freeze{Reason: "停电"}, "freeze", nil, ""},
		"beside one of that name":          {[]policyv1alpha1.Freeze{stands}, policyv1alpha1.Freeze{Reason: "switch upgrade"}, "switch-upgrade, switch-upgrade-2", nil, ""},
		"in place of one that has ended":   {[]policyv1alpha1.Freeze{over, stands}, policyv1alpha1.Freeze{Name: "over"}, "switch-upgrade, over", []string{"over"}, ""},
		"not over one that stands": {[]policyv1alpha1.Freeze{stands}, policyv1alpha1.Freeze{Name: "switch-upgrade"}, "switch-upgrade", nil,
			`freeze "switch-upgrade" (All) by bob: switch upgrade stands already; choose another --name, and unfreeze --name switch-upgrade once the new one holds`},
		"not where there is no room": {full, policyv1alpha1.Freeze{Name: "more"}, names(control(full...)), nil,
			"there are 64 freezes, and the API takes no more; see metalaw fleet status, and unfreeze some"},
	} {
		t.Run(name, func(t *testing.T) {
			fc := control(c.there...)
			_, ended, err := add(fc, c.freeze, noon)
			if (err == nil) != (c.err == "") || (err != nil && err.Error() != c.err) {
				t.Errorf("got error %v, want %s", err, c.err)
			}
			if got := names(fc); got != c.names {
				t.Errorf("got %s, want %s", got, c.names)
			}
			if diff := cmp.Diff(c.ended, ended); diff != "" {
				t.Errorf("ended: - want, + got:\n%s", diff)
			}
		})
	}
}

func TestWhatUnfreezeLifts(t *testing.T) {
	a, b := policyv1alpha1.Freeze{Name: "a", Level: "All"}, policyv1alpha1.Freeze{Name: "b", Level: "Destructive", By: "bob"}
	for name, c := range map[string]struct {
		request unfreezeRequest
		lifted  []string
		left    string
		err     string
	}{
		"one by name": {unfreezeRequest{names: []string{"b"}}, []string{`freeze "b" (Destructive) by bob`}, "a", ""},
		"all that were shown": {unfreezeRequest{all: true, shown: []policyv1alpha1.Freeze{a, b}},
			[]string{`freeze "a" (All)`, `freeze "b" (Destructive) by bob`}, "none", ""},
		"none that was added since": {unfreezeRequest{all: true, shown: []policyv1alpha1.Freeze{a}}, []string{`freeze "a" (All)`}, "b", ""},
		"none that was changed since": {unfreezeRequest{all: true, shown: []policyv1alpha1.Freeze{a, {Name: "b", Level: "Destructive", By: "eve"}}},
			[]string{`freeze "a" (All)`}, "b", ""},
		"nothing, where none was shown":     {unfreezeRequest{all: true}, nil, "a, b", ""},
		"none where one of them is unknown": {unfreezeRequest{names: []string{"a", "c"}}, nil, "a, b", `there is no freeze "c"; there are: a, b`},
		"nothing, where no breaker tripped": {unfreezeRequest{breaker: true}, nil, "a, b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			fc := control(a, b)
			lifted, err := c.request.lift(fc, noon)
			if (err == nil) != (c.err == "") || (err != nil && err.Error() != c.err) {
				t.Errorf("got error %v, want %s", err, c.err)
			}
			if diff := cmp.Diff(c.lifted, lifted); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
			if got := names(fc); got != c.left {
				t.Errorf("left %s, want %s", got, c.left)
			}
		})
	}
}

func TestTheBreakerIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		tripped, want time.Time
	}{
		"now": {noon.Add(-time.Hour), noon},
		"not before it tripped, whatever time it is here": {noon.Add(time.Minute), noon.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			fc := control()
			fc.Spec.Breaker = &policyv1alpha1.Breaker{MaxPercent: 10}
			fc.Status.Trip = &policyv1alpha1.BreakerTrip{At: metav1.NewMicroTime(c.tripped), Servers: 6, Of: 40}
			lifted, err := (&unfreezeRequest{breaker: true}).lift(fc, noon)
			if err != nil || len(lifted) != 1 || !strings.Contains(lifted[0], "over 6 of 40 servers") {
				t.Fatalf("lifted %v, error %v", lifted, err)
			}
			if got := fc.Spec.Breaker.AcknowledgedAt; !got.Time.Equal(c.want) {
				t.Errorf("acknowledged at %s, want %s", got, c.want)
			}
			if again, _ := (&unfreezeRequest{breaker: true}).lift(fc, noon); len(again) != 0 {
				t.Errorf("it was closed twice: %v", again)
			}
		})
	}
}

func TestUnfreezeSaysWhich(t *testing.T) {
	for name, r := range map[string]unfreezeRequest{
		"nothing":              {},
		"a name and all":       {names: []string{"a"}, all: true},
		"all, and the breaker": {all: true, breaker: true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := r.check(); !usage.Is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFreezeTellsNoDurationFromOneOfNothing(t *testing.T) {
	for _, word := range []string{"0", "0s", "-1h"} {
		cmd := freezeCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"--reason", "why", "--for=" + word})
		if err := cmd.Execute(); !usage.Is(err) || !strings.HasPrefix(err.Error(), "--for must be more than 0") {
			t.Errorf("--for=%s: got %v", word, err)
		}
	}
}
