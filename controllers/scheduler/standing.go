// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/policies"
)

// Claims are stored without anybody asking the bundle's rules while no webhook answers, and rules come into force that earlier
// claims break. So those that follow from the claim alone are asked again before a claim gets a server.

// rulesOf reads the rules out of the bundle in force, as long as that is of the revision that the policy is of. Else nobody knows
// what they say, so that nothing is bound by them: another pass follows, under the other revision.
func rulesOf(bundles Bundles) func(engine.Revision) policies.Rules {
	return func(of engine.Revision) policies.Rules {
		if b := bundles.Active(); b != nil && b.Revision == of && b.Admission != nil {
			return b.Admission
		}
		return replaced{}
	}
}

// replaced are rules that cannot be had any more.
type replaced struct{}

var errReplaced = errors.New("another policy came into force meanwhile; the claim is looked at again under that one")

// Standing implements policies.Rules.
func (replaced) Standing(context.Context, string, map[string]any) ([]admission.Finding, error) {
	return nil, errReplaced
}

// standing remembers what the rules said of claims, by their UID.
type standing map[types.UID]stood

// stood is the answer for one version of a claim under one revision of the rules; words is empty where nothing forbids it.
type stood struct {
	revision        engine.Revision
	resourceVersion string
	reason, words   string
	// failed is how often the rules could not be evaluated, one time after the other, and again when they are asked anew, in seconds
	// since 1970.
	failed int
	again  int64
}

// Rules that cannot be evaluated may take long until they fail, in the one loop that binds for everybody: they are asked about the
// same claim after firstStanding seconds, which is before it is due again, and each time after twice as many.
const (
	firstStanding   int64 = 4
	longestStanding int64 = 300
)

// isOf says that it is the answer for this version of a claim, under these rules.
func (s stood) isOf(c *v1alpha1.ServerClaim, under engine.Revision) bool {
	return s.revision == under && s.resourceVersion == c.ResourceVersion
}

// keep forgets claims that are not open any more.
func (s standing) keep(pending *pending) {
	maps.DeleteFunc(s, func(uid types.UID, _ stood) bool { return !pending.isOpen(uid) })
}

// forbidden refuses a claim that a rule of the bundle forbids.
func (v *view) forbidden(ctx context.Context, c *v1alpha1.ServerClaim) (step, bool) {
	if v.rules == nil {
		return step{}, false
	}
	said, known := v.stood[c.UID]
	if known = known && said.isOf(c, v.revision); !known || said.failed > 0 && v.now >= said.again {
		failed := 0
		if known {
			failed = said.failed
		}
		said = stood{revision: v.revision, resourceVersion: c.ResourceVersion}
		said.reason, said.words = policies.Forbids(ctx, v.rules, v.revision.Name, c)
		if said.reason == v1alpha1.ReasonGuardError { // which may pass
			said.failed, said.again = failed+1, v.now+min(firstStanding<<min(failed, 8), longestStanding)
		}
		v.stood[c.UID] = said
	}
	if said.words == "" {
		return step{}, false
	}
	s := refusal(said.reason, said.words)
	s.follows = true
	return s, true
}

// holdBack refuses the members of a gang where the rules forbid one of them. It says whether they do.
func (r *run) holdBack(ctx context.Context, key gangKey, members []*neighbour, everyone []asking) bool {
	why := map[types.UID]step{}
	for _, a := range everyone {
		if a.wrong != nil { // as pick says of a claim alone
			continue
		}
		if s, is := r.v.forbidden(ctx, a.claim); is {
			why[a.claim.UID] = s
		}
	}
	if len(why) == 0 {
		return false
	}
	others := refusal(v1alpha1.ReasonGangWaiting, fmt.Sprintf("gang %q: the policy forbids %d of its %d members; "+
		"none of them gets a server until that is mended", key.name, len(why), len(members)))
	others.follows = true
	for _, a := range r.completeOrGiveBack(ctx, key, members, everyone) {
		if own, is := why[a.claim.UID]; is {
			r.refuse(a, own)
		} else {
			r.refuse(a, others)
		}
	}
	return true
}
