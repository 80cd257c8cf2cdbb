// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/claims"
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

// ruleAnswers remembers what the rules said of claims, by their UID.
type ruleAnswers map[types.UID]ruleAnswer

// ruleAnswer is the answer for one version of a claim under one revision of the rules; message is empty where nothing forbids it.
type ruleAnswer struct {
	revision        engine.Revision
	resourceVersion string
	reason, message string
	// failed is how often the rules could not be evaluated, one time after the other, and again when they are asked anew, in seconds
	// since 1970.
	failed int
	again  int64
}

// Rules that cannot be evaluated may take long until they fail, in the one loop that binds for everybody: they are asked about the
// same claim after firstAnswerAgain seconds, which is before it is due again, and each time after twice as many.
const (
	firstAnswerAgain   int64 = 4
	longestAnswerAgain int64 = 300
)

// isOf says that it is the answer for this version of a claim, under these rules.
func (s ruleAnswer) isOf(c *v1alpha1.ServerClaim, under engine.Revision) bool {
	return s.revision == under && s.resourceVersion == c.ResourceVersion
}

// keep forgets claims that are not open any more.
func (s ruleAnswers) keep(isOpen func(types.UID) bool) {
	maps.DeleteFunc(s, func(uid types.UID, _ ruleAnswer) bool { return !isOpen(uid) })
}

// forbids asks the rules of the bundle about claims, once for each version of one.
func (r *cycle) forbids(ctx context.Context) func(*claims.Claim) (reason, message string) {
	if r.rules == nil {
		return nil
	}
	return func(c *claims.Claim) (string, string) {
		object := r.s.pending.seen(c.Namespace, uidOf(c))
		if object == nil {
			return "", ""
		}
		now := r.began.Unix()
		said, known := r.s.answers[object.UID]
		if known = known && said.isOf(object, r.revision); !known || said.failed > 0 && now >= said.again {
			failed := 0
			if known {
				failed = said.failed
			}
			said = ruleAnswer{revision: r.revision, resourceVersion: object.ResourceVersion}
			said.reason, said.message = policies.Forbids(ctx, r.rules, r.revision.Name, object)
			if said.reason == v1alpha1.ReasonGuardError { // which may pass
				said.failed, said.again = failed+1, now+min(firstAnswerAgain<<min(failed, 8), longestAnswerAgain)
			}
			r.s.answers[object.UID] = said
		}
		return said.reason, said.message
	}
}
