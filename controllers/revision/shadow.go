// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
)

const (
	// maxWays is how many ways to differ are told apart between two flushes; what goes beyond is counted as one.
	maxWays = 200
	maxWord = 500
)

// Shadows collects what shadows would have decided otherwise. It is safe for concurrent use.
type Shadows struct {
	evaluations, differences *prometheus.CounterVec

	mu  sync.Mutex
	all map[string]*shadowed
}

// shadowed is what one shadow has shown since the last flush, and where each server differs.
type shadowed struct {
	evaluated int64
	ways      map[way]*policyv1alpha1.ShadowDifference
	// servers is how each server differs that does, for as long as it does.
	servers map[string]string
}

// way is one way to differ.
type way struct{ state, rule, shadowRule string }

// NewShadows makes a collector and registers its metrics; it fails where they are registered already.
func NewShadows(registry prometheus.Registerer) (*Shadows, error) {
	s := &Shadows{all: map[string]*shadowed{},
		evaluations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "metalaw_policy_shadow_evaluations_total",
			Help: "Decisions that a shadow was evaluated beside, by its revision."}, []string{"revision"}),
		differences: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "metalaw_policy_shadow_differences_total",
			Help: "Servers on which a shadow would have decided otherwise, by its revision and a rule. That is the rule that would have fired, " +
				"else the one that did; none where the effects alone differ. A server counts once until its difference changes."},
			[]string{"revision", "rule"}),
	}
	for _, c := range []prometheus.Collector{s.evaluations, s.differences} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Observe takes in what the governing revision decided about a server, and what a shadow decided on the same facts. It
// counts a difference once until it changes, however often it is called.
func (s *Shadows) Observe(shadow, server string, want, got *engine.Decision, at time.Time) {
	s.evaluations.WithLabelValues(shadow).Inc()
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of(shadow)
	of.evaluated++
	if same(want, got) {
		delete(of.servers, server)
		return
	}
	wanted, gotten := say(want), say(got)
	differs := string(want.From) + "|" + wanted + "|" + gotten
	if of.servers[server] == differs {
		return
	}
	of.servers[server] = differs
	w := way{state: string(want.From), rule: ruleOf(want), shadowRule: ruleOf(got)}
	s.differences.WithLabelValues(shadow, cmp.Or(w.shadowRule, w.rule, "none")).Inc()
	of.add(w, policyv1alpha1.ShadowDifference{State: w.state, Rule: w.rule, ShadowRule: w.shadowRule, Count: 1,
		LastServer: server, LastAt: metav1.Time{Time: at}, Want: wanted, Got: gotten})
}

// Forget drops what is remembered of a server that is gone.
func (s *Shadows) Forget(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.all {
		delete(of.servers, server)
	}
}

// of is called with the lock held.
func (s *Shadows) of(shadow string) *shadowed {
	if s.all[shadow] == nil {
		s.all[shadow] = &shadowed{ways: map[way]*policyv1alpha1.ShadowDifference{}, servers: map[string]string{}}
	}
	return s.all[shadow]
}

// add counts a difference; its example takes the place of that which is known of the same way.
func (of *shadowed) add(w way, d policyv1alpha1.ShadowDifference) {
	w = of.toldApart(w)
	d.State, d.Rule, d.ShadowRule = w.state, w.rule, w.shadowRule
	if known := of.ways[w]; known != nil {
		d.Count += known.Count
	}
	of.ways[w] = &d
}

// toldApart is a way under which a difference is counted: its own, as long as there are not too many.
func (of *shadowed) toldApart(w way) way {
	if of.ways[w] == nil && len(of.ways) >= maxWays {
		return way{}
	}
	return w
}

// take is what a shadow has shown since the last call.
func (s *Shadows) take(shadow string) rollout.ShadowDelta {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.all[shadow]
	if of == nil {
		return rollout.ShadowDelta{}
	}
	delta := rollout.ShadowDelta{Evaluated: of.evaluated}
	for _, w := range slices.SortedFunc(maps.Keys(of.ways), func(a, b way) int {
		return cmp.Or(strings.Compare(a.state, b.state), strings.Compare(a.rule, b.rule), strings.Compare(a.shadowRule, b.shadowRule))
	}) {
		delta.Differences = append(delta.Differences, *of.ways[w])
	}
	of.evaluated, of.ways = 0, map[way]*policyv1alpha1.ShadowDifference{}
	return delta
}

// giveBack takes in again what could not be stored. What was seen of the same way since is the younger example.
func (s *Shadows) giveBack(shadow string, delta rollout.ShadowDelta) {
	if delta.Evaluated == 0 && len(delta.Differences) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of(shadow)
	of.evaluated += delta.Evaluated
	for _, d := range delta.Differences {
		w := of.toldApart(way{d.State, d.Rule, d.ShadowRule})
		if known := of.ways[w]; known != nil {
			known.Count += d.Count
			continue
		}
		of.add(w, d)
	}
}

// keep forgets shadows that are none any more.
func (s *Shadows) keep(shadows func(name string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.all {
		if !shadows(name) {
			delete(s.all, name)
			s.evaluations.DeleteLabelValues(name)
			s.differences.DeletePartialMatch(prometheus.Labels{"revision": name})
		}
	}
}

// same says that two decisions come to the same: what happens to the server, not which rule says so.
func same(a, b *engine.Decision) bool {
	if (a.Halt == nil) != (b.Halt == nil) || a.Halt != nil && a.Halt.Cause != b.Halt.Cause {
		return false
	}
	if (a.Awaits == nil) != (b.Awaits == nil) || a.Awaits != nil && (a.Awaits.Effect != b.Awaits.Effect || a.Awaits.Rule != b.Awaits.Rule) {
		return false
	}
	return a.To == b.To && a.Retry == b.Retry && slices.Equal(a.Clears, b.Clears) && slices.Equal(a.Marks, b.Marks) &&
		slices.EqualFunc(a.Effects, b.Effects, func(x, y engine.Effect) bool { return effectText(x) == effectText(y) })
}

// ruleOf is the rule that fired, or at which evaluation stopped; empty where nothing moves.
func ruleOf(d *engine.Decision) string {
	if d.Halt != nil {
		return d.Halt.Rule
	}
	return d.Rule
}

// say is a decision in words.
func say(d *engine.Decision) string {
	text := "stays in " + string(d.From)
	switch {
	case d.Halt != nil:
		text = fmt.Sprintf("halts at %s: %s", d.Halt.Rule, d.Halt.Cause)
	case d.Moves():
		text = fmt.Sprintf("moves to %s by %s", d.To, d.Rule)
	case len(d.Effects) > 0:
		var effects []string
		for _, e := range d.Effects {
			effects = append(effects, effectText(e))
		}
		text += " and ensures " + strings.Join(effects, ", ")
	}
	if d.Awaits != nil {
		text += fmt.Sprintf(", waits for %s before %s", d.Awaits.Rule, d.Awaits.Effect)
	}
	if len(d.Marks) > 0 {
		text += ", marks " + strings.Join(d.Marks, " ")
	}
	if len(d.Clears) > 0 {
		text += ", clears " + strings.Join(d.Clears, " ")
	}
	return diag.Shortened(text, maxWord)
}

func effectText(e engine.Effect) string {
	text := e.Name
	for _, p := range e.Params {
		text += fmt.Sprintf(" %s=%v", p.Name, p.Value)
	}
	return text
}
