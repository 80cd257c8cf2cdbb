// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// seer writes down what shadows would have decided, each difference once in a row.
type seer struct {
	seen   []string
	panics bool
}

func (s *seer) Forget(string) {}

func (s *seer) Observe(shadow, server string, want, got *engine.Decision, _ time.Time) {
	if s.panics {
		panic("no room left")
	}
	say := func(d *engine.Decision) string {
		if d.Halt != nil {
			return "halts " + string(d.Halt.Cause)
		}
		return fmt.Sprintf("%s %s", d.To, d.Rule)
	}
	text := fmt.Sprintf("%s: %s; %s", server, say(want), say(got))
	if len(s.seen) == 0 || s.seen[len(s.seen)-1] != text {
		s.seen = append(s.seen, text)
	}
}

func TestAShadowIsComparedAndDoesNothing(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		shadow *bundle.Bundle
		panics bool
		want   []string
	}{
		"that would move": {variant(t, "3.0.0", "{rule: ParkedAvailable, to: Parked,   when: parkAsked && poweredOff}",
			"{rule: Idle, to: Parked, when: poweredOff}"), false, []string{"a: Available ; Available ", "a: Available ; Parked Idle"}},
		"that decides the same":              {variant(t, "3.0.0"), false, []string{"a: Available ; Available "}},
		"that panics":                        {&bundle.Bundle{Revision: engine.Revision{Name: "broken"}}, false, []string{"a: Available ; halts GuardError"}},
		"where what takes it in panics":      {variant(t, "3.0.0"), true, nil},
		"that governs is compared with none": {good, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, s := newMachine(redfish.PowerOff), &seer{panics: c.panics}
				w := inWorld(t, m, serverIn(v1alpha1.StateAvailable, pinnedTo(good)))
				w.manager.Bundles = &rules{target: good, shadow: []*bundle.Bundle{c.shadow}}
				w.manager.Shadows = s
				w.manager.run(time.Hour)
				if diff := cmp.Diff(c.want, s.seen); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if got := lifecycleText(w.server()); got != "Available 7 default" {
					t.Errorf("it is %s", got)
				}
				m.wants(t, "meanwhile")
			})
		})
	}
}

func TestAShadowKnowsItsOwnSettings(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	reported := func(unauthenticated bool) *policyv1alpha1.ServerInventory {
		return &policyv1alpha1.ServerInventory{Report: &policyv1alpha1.ProbeReport{Entry: 7, Unauthenticated: unauthenticated}}
	}
	dirty := dirtyInventory(nil)
	dirty.Report = reported(false).Report
	for name, c := range map[string]struct {
		server    *v1alpha1.Server
		inventory *policyv1alpha1.ServerInventory
		lifecycle func(text string) string
		settings  func(*bundle.Settings)
		want      string
	}{
		"that no disk is to be erased": {serverIn(v1alpha1.StateCleanup, toWipe), dirty,
			func(text string) string {
				return strings.Replace(text, "erased:       wipe.entry", `erased:       policy.sanitization == "none" || wipe.entry`, 1)
			}, func(s *bundle.Settings) { s.Sanitization = bundle.SanitizationNone }, "a: Cleanup ; Available Wiped"},
		"that a machine found running is managed": {serverIn(v1alpha1.StateObserving, func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = nil }), nil,
			nil, func(s *bundle.Settings) { s.FirstSeen = bundle.FirstSeenManage }, "a: Observing ; Initial Consented"},
		"that a release counts a day later": {serverIn(v1alpha1.StateReserved, toWipe, func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateReserved }), nil,
			nil, func(s *bundle.Settings) { s.ReleaseGrace = 24 * time.Hour }, "a: Cleanup ClaimEnded; Initial ReferenceLost"},
		"that a report needs no token": {serverIn(v1alpha1.StateDiscovery, func(s *v1alpha1.Server) { s.Status.Lifecycle.EnteredAt = ago(time.Minute) }), reported(true),
			nil, func(s *bundle.Settings) { s.AllowUnauthenticated = true }, "a: Discovery ; Available ProbeReported"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.lifecycle == nil {
				c.lifecycle = func(text string) string { return text }
			}
			shadow, s := changed(t, "3.0.0", c.lifecycle), &seer{}
			c.settings(&shadow.Settings)
			pinnedTo(good)(c.server)
			metav1.SetMetaDataAnnotation(&c.server.ObjectMeta, v1alpha1.ReleasedCountedAnnotation, "9h")
			v := visitOf(t, c.server, &rules{target: good, shadow: []*bundle.Bundle{shadow}}, s)
			v.seen.CountedNow, v.seen.Inventory = counted.Time(10*time.Hour), c.inventory
			v.governBy(v.governs)
			v.Decide()
			v.settle()
			if diff := cmp.Diff([]string{c.want}, s.seen); diff != "" || v.seen.Facts.Policy.Sanitization != bundle.SanitizationRequired {
				t.Errorf("(-want +got)\n%s, and the facts say %q", diff, v.seen.Facts.Policy.Sanitization)
			}
		})
	}
}

// visitOf is a scope of a server whose machine was read just now and is off.
func visitOf(t testing.TB, server *v1alpha1.Server, r *rules, shadows Shadows) *scope {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s := newSubject(Options{AdoptionRate: 10, Cache: newCache(nil, func(string) {}), Bundles: r, Shadows: shadows, Metrics: metrics, Now: time.Now,
		Outage: func() policies.Outage { return policies.Outage{} }, PowerGrace: testPowerGrace})
	t.Cleanup(s.Cache.Close)
	now := time.Now()
	v := s.scope(server)
	v.seen.BMC = plan.BMC{Tried: true, At: now, Begun: now, System: newMachine(redfish.PowerOff).shows}
	v.governBy(rollout.Governs(v.question()))
	return v
}

// BenchmarkDecide is a decision with the shadows beside it.
func BenchmarkDecide(b *testing.B) {
	good, err := defaultBundle()
	if err != nil {
		b.Fatal(err)
	}
	for _, shadows := range []int{0, 1, 2} {
		b.Run(fmt.Sprintf("shadows=%d", shadows), func(b *testing.B) {
			r := &rules{target: good}
			for i := range shadows {
				r.shadow = append(r.shadow, variant(b, fmt.Sprintf("3.%d.0", i)))
			}
			v := visitOf(b, serverIn(v1alpha1.StateAvailable, pinnedTo(good)), r, nothing{})
			b.ReportAllocs()
			for b.Loop() {
				v.Decide()
				v.settle()
			}
		})
	}
}

// nothing takes in what shadows decide and keeps none of it.
type nothing struct{}

func (nothing) Forget(string)                                                         {}
func (nothing) Observe(string, string, *engine.Decision, *engine.Decision, time.Time) {}
