// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/canary"
)

// rule is who governs at one moment. It is immutable.
type rule struct {
	active *bundle.Bundle
	// missing says why nothing governs; empty where active does.
	missing string
	// promotion is that which put the active one in force; 0 where none did.
	promotion int64
	canaries  []canaryRule
	shadows   []*bundle.Bundle
	// held are the revisions in use that this engine refuses.
	held []string
}

// canaryRule governs the servers in the scope of a canary.
type canaryRule struct {
	bundle  *bundle.Bundle
	matcher canary.Matcher
	scope   canary.Scope
	since   time.Time
	// cost is what was counted of it so far.
	cost rollout.Troubles
}

// canary is the canary of a revision; nil where that governs as none.
func (r *rule) canary(revision string) *canaryRule {
	for i := range r.canaries {
		if c := &r.canaries[i]; c.bundle.Revision.Name == revision {
			return c
		}
	}
	return nil
}

// text tells one rule from another.
func (r *rule) text() string {
	all := []string{r.active.Revision.Name}
	for i := range r.canaries {
		all = append(all, "canary "+r.canaries[i].bundle.Revision.Name+" "+r.canaries[i].scope.String())
	}
	for _, b := range r.shadows {
		all = append(all, "shadow "+b.Revision.Name)
	}
	return strings.Join(append(all, r.held...), "\n")
}

// names are the revisions that the rule speaks of.
func (r *rule) names() map[string]bool {
	all := map[string]bool{r.active.Revision.Name: true}
	for i := range r.canaries {
		all[r.canaries[i].bundle.Revision.Name] = true
	}
	for _, b := range r.shadows {
		all[b.Revision.Name] = true
	}
	for _, name := range r.held {
		all[name] = true
	}
	return all
}

// governing is the revision that is in force: by its promotion, or, until the leader has numbered it, as the built-in one of the
// manager that governed first; nil where there is neither.
func governing(revisions []policyv1alpha1.PolicyRevision) *policyv1alpha1.PolicyRevision {
	if r := policyv1alpha1.InForce(revisions); r != nil {
		return r
	}
	i := slices.IndexFunc(revisions, func(r policyv1alpha1.PolicyRevision) bool { return r.Status.Stage == policyv1alpha1.StageEmbedded })
	if i < 0 {
		return nil
	}
	return &revisions[i]
}

// follow compiles and tests what is in use, and has it govern as the revisions say.
func (s *Store) follow(ctx context.Context, revisions []policyv1alpha1.PolicyRevision) error {
	before := s.rule.Load()
	next := &rule{active: s.embedded}
	var errs []error
	first := governing(revisions)
	for i := range revisions {
		r := &revisions[i]
		s.renewed(r)
		if r != first && !rollout.InUse(&r.Status, r.Promotion()) {
			if r.Status.Servers > 0 && s.refuses(r.Name) {
				next.held = append(next.held, r.Name)
			}
			continue
		}
		fresh := s.tested(r.Name) == nil
		t, err := s.try(ctx, r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if fresh {
			logTrial(ctx, r.Name, t)
		}
		next.add(r, t)
		if r != first {
			continue
		}
		if next.promotion, next.active = r.Promotion(), t.bundle; t.bundle == nil {
			next.active = s.standIn(r)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...) // a rule with a hole in it would let servers move elsewhere
	}
	missing := policyv1alpha1.PromotionMissing(revisions)
	switch {
	case next.promotion < before.promotion:
		// The revision in force has been deleted. It stays so, and the leader stores it again.
		next.promotion, next.active = before.promotion, before.active
	case missing != nil:
		next = &rule{held: next.held, missing: rollout.Missing(missing.Name),
			active: s.standIn(&policyv1alpha1.PolicyRevision{})}
	}
	slices.SortFunc(next.canaries, func(a, b canaryRule) int {
		return cmp.Or(b.since.Compare(a.since), strings.Compare(a.bundle.Revision.Name, b.bundle.Revision.Name))
	})
	slices.SortFunc(next.shadows, func(a, b *bundle.Bundle) int { return strings.Compare(a.Revision.Name, b.Revision.Name) })
	slices.Sort(next.held)
	s.rule.Store(next)
	if next.text() != before.text() {
		logf.FromContext(ctx).WithName("revision").Info("governs", "revision", next.active.Revision.Name, "promotion", next.promotion,
			"canaries", len(next.canaries), "shadows", len(next.shadows), "held", next.held)
		s.tellChange()
	}
	return nil
}

// add gives a revision the place that its status says.
func (r *rule) add(revision *policyv1alpha1.PolicyRevision, t *trial) {
	st := &revision.Status
	if t.refused() != "" {
		r.held = append(r.held, revision.Name)
		return
	}
	switch st.Stage {
	case policyv1alpha1.StageCanary:
		if c := st.Canary; c != nil && !c.Paused {
			scope := canary.Scope{Selector: c.Selector, Percent: c.Percent}
			r.canaries = append(r.canaries, canaryRule{
				bundle: t.bundle, scope: scope, matcher: scope.Matcher(revision.Spec.Bundle), since: c.Since.Time,
				cost: rollout.Troubles{Halts: c.Halts, Errors: c.Errors},
			})
		}
	case policyv1alpha1.StageShadow:
		r.shadows = append(r.shadows, t.bundle)
	default:
	}
}

func (s *Store) tellChange() {
	s.mu.Lock()
	calls := slices.Clone(s.changed)
	s.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

const (
	// startLimit is how long an API server may keep the manager from starting, startPause the time between two tries.
	startLimit = time.Minute
	startPause = 2 * time.Second
)

// Load reads the revisions before anything is decided, and compiles and tests those in use: in force, canary, shadow, or
// with servers pinned to them. It fails where the revisions cannot be read; a revision that is refused is Held.
func (s *Store) Load(ctx context.Context, live client.Reader) error {
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var list policyv1alpha1.PolicyRevisionList
	for {
		err := live.List(limited, &list)
		if err == nil {
			break
		}
		again, cancel := context.WithTimeout(limited, startPause)
		<-again.Done()
		cancel()
		if limited.Err() != nil || meta.IsNoMatchError(err) {
			return fmt.Errorf("nothing was started: the policy revisions cannot be read, so it is not known what governs: %w", err)
		}
	}
	for i := range list.Items {
		r := &list.Items[i]
		if st := &r.Status; st.Servers > 0 || st.Stage == "" { // without a status nobody knows who is pinned to it
			if t, err := s.try(ctx, r); err != nil {
				return err
			} else if !rollout.InUse(st, r.Promotion()) && r != governing(list.Items) {
				logTrial(ctx, r.Name, t)
			}
		}
	}
	return s.follow(ctx, list.Items)
}
