// SPDX-License-Identifier: Apache-2.0

// Package rights says which rights a ServerMaintenance takes and asks the API server whether a user holds a right. Admission asks when
// the object is written, and the maintenance controller asks again before it hands a server over.
package rights

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// The verbs on servers that a maintenance may take.
const (
	// VerbMaintain asks for a server that no claim in the namespace of the maintenance holds.
	VerbMaintain = "maintain"
	// VerbEnforce asks for a server without the approval of the holder.
	VerbEnforce = "enforce"
	// VerbBoot boots an image of the maintenance on a server that holds, or may hold, the data of a claim.
	VerbBoot = "boot-maintenance"
)

// VerbUse, on a BMCSecret, decides where the manager sends its password.
const VerbUse = "use"

// BMCSecrets is the resource that VerbUse is on.
const BMCSecrets = "bmcsecrets"

// servers is the resource that the verbs of a maintenance are on.
const servers = "servers"

// roles are the ClusterRoles of the shipped manifests by the verb that each gives.
var roles = map[string]string{
	VerbMaintain: "metalaw-maintainer",
	VerbEnforce:  "metalaw-maintenance-enforcer",
	VerbBoot:     "metalaw-maintenance-booter",
	VerbUse:      "metalaw-credential-user",
}

// Right is a verb on one cluster-scoped object of metal.ironcore.dev.
type Right struct {
	Verb, Resource, Name string
}

// Role is the ClusterRole of the shipped manifests that gives the right; empty where none does.
func (r Right) Role() string { return roles[r.Verb] }

// Attributes are what the API server is asked about.
func (r Right) Attributes() authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: r.Verb, Group: v1alpha1.GroupVersion.Group, Resource: r.Resource, Name: r.Name}
}

// Lacks says which right a user lacks, and which role gives it.
func (r Right) Lacks(user string) string {
	return fmt.Sprintf("user %q lacks the verb %s on %s.%s %q, which ClusterRole %s gives",
		user, r.Verb, r.Resource, v1alpha1.GroupVersion.Group, r.Name, r.Role())
}

// Needed are the rights that a maintenance takes. claim is the claim that holds the server, and dirty says that the server may hold
// data; see Dirty. Where server is nil nothing is known of it, and it counts as one with data.
func Needed(m *v1alpha1.ServerMaintenance, server *v1alpha1.Server, claim *v1alpha1.ServerClaim, dirty bool) []Right {
	var all []Right
	need := func(verb string) {
		all = append(all, Right{Verb: verb, Resource: servers, Name: m.Spec.ServerRef.Name})
	}
	if !holds(claim, server) || claim.Namespace != m.Namespace {
		need(VerbMaintain)
	}
	if m.Spec.Policy == v1alpha1.ServerMaintenancePolicyEnforced {
		need(VerbEnforce)
	}
	if m.Spec.ServerBootConfigurationTemplate != nil && (server == nil || server.Spec.ServerClaimRef != nil || dirty) {
		need(VerbBoot)
	}
	return all
}

// holds says that the server names the claim as its holder. One of the same name but another UID holds nothing.
func holds(claim *v1alpha1.ServerClaim, server *v1alpha1.Server) bool {
	if claim == nil || server == nil || server.Spec.ServerClaimRef == nil {
		return false
	}
	uid, recorded := server.Annotations[v1alpha1.ClaimUIDAnnotation]
	ref := server.Spec.ServerClaimRef
	return ref.Namespace == claim.Namespace && ref.Name == claim.Name && (!recorded || uid == string(claim.UID))
}

// Dirty says that a server may hold somebody's data, by its status or by what its inventory remembers. inventory may be nil.
func Dirty(server *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) bool {
	return server.Status.Lifecycle != nil && slices.Contains(server.Status.Lifecycle.Marks, v1alpha1.MarkDirty) ||
		inventory != nil && inventory.Custody != nil && slices.Contains(inventory.Custody.Marks, v1alpha1.MarkDirty)
}

// Ask asks the API server whether a user holds a right. It remembers nothing. An error is no answer.
func Ask(ctx context.Context, c client.Writer, maker Maker, right Right) (bool, error) {
	return AskFor(ctx, c, maker, right.Attributes())
}

// AskFor asks about any right, as whom the user was authenticated: with groups and all that authentication says besides.
func AskFor(ctx context.Context, c client.Writer, maker Maker, right authorizationv1.ResourceAttributes) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(maker.Extra))
	for key, values := range maker.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: maker.Username, UID: maker.UID, Groups: maker.Groups, Extra: extra, ResourceAttributes: &right,
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("whether user %q may %s %s cannot be told: %w", maker.Username, right.Verb, right.Resource, err)
	}
	return review.Status.Allowed, nil
}
