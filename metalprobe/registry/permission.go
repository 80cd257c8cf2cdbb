// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/freeze"
)

// authorizeWipe accepts only a token that was minted for a wipe of the entry in which the server is, and only while the
// server itself may be wiped: all as the API has it now, not as a cache remembers it.
func (r *Registry) authorizeWipe(request *http.Request, uuid string) (grant, *refusal) {
	g, refused := r.authorize(request, uuid, nil, true)
	if refused != nil {
		return grant{}, refused
	}
	if g.purpose != metalv1alpha1.ProbePurposeWipe {
		return grant{}, &refusal{
			status: http.StatusForbidden, outcome: OutcomeWrongPurpose, server: g.server,
			message: fmt.Sprintf("the credential was minted for purpose %s", g.purpose),
			remedy:  "erase nothing; only a server that was booted to be wiped may be",
		}
	}
	if why := mayNotErase(g.server); why != "" {
		return grant{}, notExpected(why, "erase nothing more").about(g.server)
	}
	if refused := r.bmcHolds(request.Context(), g.server); refused != nil {
		return grant{}, refused
	}
	return g, r.running(g)
}

// bmcHolds refuses a wipe while the server's BMC asks to leave its servers alone. It reads the BMC itself, because the
// annotation on the server comes later. A BMC that does not exist says nothing.
func (r *Registry) bmcHolds(ctx context.Context, s *metalv1alpha1.Server) *refusal {
	if s.Spec.BMCRef == nil {
		return nil
	}
	bmc := &metalv1alpha1.BMC{}
	err := r.options.Live.Get(ctx, client.ObjectKey{Name: s.Spec.BMCRef.Name}, bmc)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return &refusal{
			status: http.StatusServiceUnavailable, outcome: OutcomeFailed, retryAfter: r.options.HeldRetry,
			err:     fmt.Errorf("reading BMC %s: %w", s.Spec.BMCRef.Name, err),
			message: "the registry could not read the BMC of this server",
			remedy:  "erase no further disk, and ask again; the manager's log has the cause",
		}
	case err == nil && metalv1alpha1.IgnoresChildren(bmc):
		return notExpected("BMC "+bmc.Name+" asks to leave its servers alone", "erase nothing more").about(s)
	}
	return nil
}

// mayNotErase says why no disk of a server may be erased, whatever token is shown; empty where it may.
func mayNotErase(s *metalv1alpha1.Server) string {
	switch {
	case s.Spec.ServerClaimRef != nil:
		return "a claim holds the server"
	case !metalv1alpha1.ReleaseRecorded(s):
		return "no release record names the last holder of the server"
	case metalv1alpha1.Ignored(s):
		return "the server is to be left alone (annotation " + metalv1alpha1.IgnoredBy(s) + ")"
	case !s.DeletionTimestamp.IsZero():
		return "the server is being deleted"
	}
	return ""
}

// held says that a wipe which is in order must not go on for now. What cannot be read holds back as well.
func (r *Registry) held(ctx context.Context, server *metalv1alpha1.Server) *refusal {
	if r.options.ObserveOnly {
		return r.heldBack("the manager runs to observe only")
	}
	if ask := r.options.Ungoverned; ask != nil {
		if why := ask(); why != "" {
			return r.heldBack(why)
		}
	}
	control := &policyv1alpha1.FleetControl{}
	err := r.options.Live.Get(ctx, client.ObjectKey{Name: policyv1alpha1.FleetControlName}, control)
	if client.IgnoreNotFound(err) != nil {
		return failed(fmt.Errorf("reading FleetControl %s: %w", policyv1alpha1.FleetControlName, err))
	}
	if err != nil {
		return nil
	}
	if hold := freeze.On(control, server.Labels, r.options.Now()); hold.Destructive() {
		return r.heldBack(hold.Message)
	}
	return nil
}

func (r *Registry) heldBack(why string) *refusal {
	return &refusal{
		status: http.StatusServiceUnavailable, outcome: OutcomeHeld, retryAfter: r.options.HeldRetry,
		message: why, remedy: "begin no further disk, and ask again",
	}
}
