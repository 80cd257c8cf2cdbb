// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/rights"
	"github.com/metalaw/metalaw/webhooks/review"
)

// Rules ask for the verb use on the BMCSecrets whose passwords a change sends to a place.
type Rules struct {
	Mode Mode
	// Cache knows BMCs and BMCSecrets.
	Cache   client.Reader
	Bundles review.Bundles
	// Authority says that the manager was given an authority that signs the certificates of BMCs.
	Authority bool
	// May says whether a user holds a right.
	May func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error)
}

// JudgeBMC asks about a BMC.
func (r *Rules) JudgeBMC(ctx context.Context, c review.Change[v1alpha1.BMC], found *review.Findings) error {
	if r.idle() || c.Deleted() {
		return nil
	}
	return r.judge(ctx, c.User, ofBMC(c.Old, c.New), found)
}

// JudgeServer asks about a Server with an inline BMC.
func (r *Rules) JudgeServer(ctx context.Context, c review.Change[v1alpha1.Server], found *review.Findings) error {
	if r.idle() || c.Deleted() {
		return nil
	}
	return r.judge(ctx, c.User, ofServer(c.Old, c.New), found)
}

// JudgeEndpoint asks about an Endpoint.
func (r *Rules) JudgeEndpoint(ctx context.Context, c review.Change[v1alpha1.Endpoint], found *review.Findings) error {
	if r.idle() || c.Deleted() {
		return nil
	}
	to, err := r.reached(ctx, c.New.Name)
	if err != nil {
		return r.untold(err, found)
	}
	return r.judge(ctx, c.User, ofEndpoint(c.Old, c.New, to), found)
}

func (r *Rules) idle() bool { return r.Mode != Warn && r.Mode != On }

// reached reads what an Endpoint leads to. A BMCSecret that the cache lacks verifies nothing.
func (r *Rules) reached(ctx context.Context, endpoint string) (reached, error) {
	to := reached{
		secrets:   map[string]*v1alpha1.BMCSecret{},
		authority: r.Authority && r.Bundles.Active().Settings.BMCTLS != bundle.TLSInsecure,
	}
	var bmcs v1alpha1.BMCList
	if err := r.Cache.List(ctx, &bmcs, client.MatchingFields{fieldindex.BMCByEndpoint: endpoint}); err != nil {
		return to, fmt.Errorf("the BMCs of Endpoint %s cannot be listed: %w", endpoint, err)
	}
	to.bmcs = bmcs.Items
	names := []string{endpoint}
	for i := range to.bmcs {
		names = append(names, to.bmcs[i].Spec.BMCSecretRef.Name)
	}
	for _, name := range names {
		secret := &v1alpha1.BMCSecret{}
		switch err := r.Cache.Get(ctx, client.ObjectKey{Name: name}, secret); {
		case err == nil:
			to.secrets[name] = secret
		case client.IgnoreNotFound(err) != nil:
			return to, fmt.Errorf("BMCSecret %s cannot be read: %w", name, err)
		}
	}
	return to, nil
}

// judge asks for each use, and says what the user lacks.
func (r *Rules) judge(ctx context.Context, user authenticationv1.UserInfo, uses []Use, found *review.Findings) error {
	for _, use := range uses {
		right := rights.Right{Verb: rights.VerbUse, Resource: rights.BMCSecrets, Name: use.Secret}
		may, err := r.May(ctx, user, right.Attributes())
		switch {
		case err != nil:
			if err := r.untold(err, found); err != nil {
				return err
			}
		case may:
		case r.Mode == On:
			found.Deny(field.Forbidden(use.Path, "this decides where a password goes: "+right.Lacks(user.Username)+"; "+remedy))
		default:
			found.Warn("%s: this decides where a password goes, and is refused with --credential-use=on: %s; %s",
				use.Path, right.Lacks(user.Username), remedy)
		}
	}
	return nil
}

// untold is what becomes of a question without an answer: it refuses only where a lack would refuse.
func (r *Rules) untold(err error, found *review.Findings) error {
	if r.Mode == On {
		return err
	}
	found.Warn("whether --credential-use=on would refuse this cannot be told: %v", err)
	return nil
}

// remedy names the shipped binding for the client that changes Endpoints by itself.
const remedy = "for FeDHCP bind it with: kubectl apply -k config/fedhcp"
