// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	claimloop "github.com/metalaw/metalaw/controllers/claim"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/internal/freeze"
)

// lookAtFreezes reads what is held back by hand.
func (w *world) lookAtFreezes(ctx context.Context, c client.Client) error {
	var controls policyv1alpha1.FleetControlList
	if err := c.List(ctx, &controls); err != nil {
		return access.Missing(&w.notes, err, "list", access.FleetControls, "whether a freeze holds servers back is not known to you")
	}
	at := slices.IndexFunc(controls.Items, func(c policyv1alpha1.FleetControl) bool { return c.Name == policyv1alpha1.FleetControlName })
	if at >= 0 {
		w.control = &controls.Items[at]
	}
	return nil
}

// frozen says of a claim that would be bound that a freeze holds its server back: the server is written for it, which no machine
// notices, and nothing is prepared for its boot, without which no claim says that it is Bound.
func (w *world) frozen(o outcome) outcome {
	at := slices.IndexFunc(w.servers, func(s v1alpha1.Server) bool { return s.Name == o.server.Name })
	if !o.binds || at < 0 {
		return o
	}
	if held := w.heldBack(&w.servers[at]); held != "" {
		o.binds, o.waitsFor = false, "the server "+o.server.Name+", which it would get: "+held
	}
	return o
}

// heldBack says by what a freeze holds back what claims have done to a server; empty where none does.
func (w *world) heldBack(s *v1alpha1.Server) string {
	hold := freeze.On(w.control, s.Labels, w.now)
	if !fleet.Setting.HeldBy(hold.Level) {
		return ""
	}
	return claimloop.HeldBack(hold.Reason)
}

// obstacle says what keeps a server from being reserved for the claim that it is written for: what its conditions tell, or a freeze that
// they do not tell of yet. It is empty where nothing is known to.
func (w *world) obstacle(s *v1alpha1.Server) string {
	return cmp.Or(claimloop.Obstacle(s), w.heldBack(s))
}
