// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/canary"
	"github.com/metalaw/metalaw/webhooks/review"
)

// judgeDropped refuses a bundle that would leave servers behind: in states that it neither defines nor migrates. One that was
// in force before is gone back to in an emergency, and cannot know of states that came later: it is let through with a warning.
func (l *Rules) judgeDropped(ctx context.Context, is *head, c *Examined, found *review.Findings) error {
	if !is.governs() || c.Bundle == nil || c.Bundle.Lifecycle == nil {
		return nil
	}
	scope, faults := canary.Parse(is.object.Annotations)
	if is.stage != policyv1alpha1.LabelCanary {
		scope = canary.Scope{}
	} else if len(faults) > 0 {
		return nil // it is refused for that
	}
	if is.stage == policyv1alpha1.LabelCanary && !c.Bundle.Lifecycle.Defines(engine.State(v1alpha1.StateError)) {
		found.Warn("bundle %s has no state %s, so that canary.maxErrors bounds nothing: its canary is paused by halts alone",
			is.name, v1alpha1.StateError)
	}
	what, first, err := l.Dropped(ctx, c, scope.Matcher(is.name))
	if what == "" {
		return err
	}
	if c.promoted {
		found.Warn("%s; it was in force before and is gone back to: they stay under their revision until they leave these states", what)
		return nil
	}
	found.Deny(field.Forbidden(labelsPath.Key(policyv1alpha1.StageLabel), fmt.Sprintf(
		"%s; say in lifecycle.yaml where each of them leads, as migrate: {%s: %s}, and raise version", what, first, c.Bundle.Lifecycle.Initial())))
	return nil
}

// Dropped tells of the servers in a scope that a bundle would leave behind, and names the first of their states; empty where there are
// none.
func (l *Rules) Dropped(ctx context.Context, c *Examined, scope canary.Matcher) (what, first string, err error) {
	servers, err := l.servers(ctx)
	if err != nil {
		return "", "", err
	}
	dropped, total := map[string]int{}, 0
	pinned := map[string]*bundle.Bundle{} // each is asked for once: it may be under test, which is waited for
	for i := range servers {
		s := &servers[i]
		state, at := engine.State(s.Status.State), s.Status.Lifecycle
		if at == nil || state == "" || c.Bundle.Takes(state) || !scope.Covers(s.Labels, s.Spec.SystemUUID) {
			continue
		}
		b, asked := pinned[at.Revision]
		if !asked {
			if b, err = l.pinned(ctx, at.Revision); err != nil {
				return "", "", err
			}
			pinned[at.Revision] = b
		}
		if b == nil || b.Lifecycle.Defines(state) { // the revision knows the state, as far as is known
			dropped[string(state)]++
			total++
		}
	}
	if total == 0 {
		return "", "", nil
	}
	var all []string
	states := slices.Sorted(maps.Keys(dropped))
	for _, state := range states {
		all = append(all, fmt.Sprintf("%s %d", state, dropped[state]))
	}
	return fmt.Sprintf("%s in states that bundle %s %s neither defines nor migrates: %s", plural(total, "server is", "servers are"),
		c.Name, c.Version, strings.Join(all, ", ")), states[0], nil
}

// pinned is the bundle of a revision, nil where there is none that this manager can use; it is not waited for beyond the request's time.
func (l *Rules) pinned(ctx context.Context, revision string) (*bundle.Bundle, error) {
	answer := make(chan *bundle.Bundle, 1)
	go func() {
		b, _ := l.Bundles.Revision(revision)
		answer <- b
	}()
	select {
	case b := <-answer:
		return b, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("what PolicyRevision %q knows is not known yet; try again: %w", revision, ctx.Err())
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
