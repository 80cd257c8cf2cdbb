// SPDX-License-Identifier: Apache-2.0

// Package maintenances judges who makes a ServerMaintenance and what it asks for.
package maintenances

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/rights"
	"github.com/metalaw/metalaw/webhooks/review"
)

const (
	// shortestExpected and longestExpected bound how long a maintenance may be expected to take.
	shortestExpected, longestExpected = time.Minute, 30 * 24 * time.Hour
)

// paths are the fields that a right is needed for, by its verb.
var paths = map[string]*field.Path{
	rights.VerbMaintain: field.NewPath("spec", "serverRef"),
	rights.VerbEnforce:  field.NewPath("spec", "policy"),
	rights.VerbBoot:     field.NewPath("spec", "serverBootConfigurationTemplate"),
}

// Annotations are those of metalaw that are read on a ServerMaintenance; admission writes the last.
var Annotations = []string{
	v1alpha1.ExpectedDurationAnnotation, v1alpha1.AbortAnnotation, v1alpha1.ForceOffReasonAnnotation, v1alpha1.PlanOnlyAnnotation,
	v1alpha1.AdoptAnnotation, v1alpha1.MakerAnnotation,
}

// Rules judge ServerMaintenances by what they look up.
type Rules struct {
	// Cache knows Servers and claims. Reader reads past it, before a denial.
	Cache, Reader client.Reader
	// May says whether a user holds a right.
	May func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error)
	// DataOf says why a server is taken to hold somebody's data; empty where it is not.
	DataOf func(context.Context, *v1alpha1.Server) (string, error)
}

// facts is what was looked up for a ServerMaintenance.
type facts struct {
	// unknown says that there is no Server of the name; looked up where madeAnew says so.
	unknown bool
	// lacks are the rights that the maintenance takes and that the user does not hold; looked up in the same case.
	lacks []rights.Right
}

// madeAnew says that a user makes a maintenance, changes what it asks for, or has the manager act on an old one. That user is its
// maker from then on, and has to hold the rights.
func madeAnew(c review.Change[v1alpha1.ServerMaintenance]) bool {
	if c.Deleted() || c.ByManager || c.Status {
		return false
	}
	adopted, set := review.Written(c.Old, c.New, v1alpha1.AdoptAnnotation)
	return c.Created() || set && adopted == "true" || !equality.Semantic.DeepEqual(c.Old.Spec, c.New.Spec)
}

// check holds what a user writes against the rules. A deletion ends a maintenance, and anyone who may delete may end it.
func check(c review.Change[v1alpha1.ServerMaintenance], f facts, found *review.Findings) {
	if c.Deleted() || c.ByManager || c.Status {
		return
	}
	checkMaker(c, found)
	for _, right := range f.lacks {
		found.Deny(field.Forbidden(paths[right.Verb], right.Lacks(c.User.Username)+whyNeeded(right, c.New)))
	}
	checkServer(c, found)
	checkExpectedDuration(c, found)
	review.CheckReason(c.Old, c.New, v1alpha1.AbortAnnotation, "say why it is to stop; the maintenance keeps it", found)
	review.CheckReason(c.Old, c.New, v1alpha1.ForceOffReasonAnnotation, "say why the power may be cut; a tool may be writing firmware", found)
	for _, name := range []string{v1alpha1.AdoptAnnotation, v1alpha1.PlanOnlyAnnotation} {
		review.CheckYesNo(c.Old, c.New, name, found)
	}
	review.CheckNames(c.Old, c.New, "ServerMaintenance", Annotations, found)
	if f.unknown {
		found.Warn("%s: there is no Server %q; the maintenance waits until there is", paths[rights.VerbMaintain], c.New.Spec.ServerRef.Name)
	}
}

// whyNeeded says what would take the right away.
func whyNeeded(right rights.Right, m *v1alpha1.ServerMaintenance) string {
	switch right.Verb {
	case rights.VerbMaintain:
		return fmt.Sprintf("; a server that a claim in namespace %q holds takes none", m.Namespace)
	case rights.VerbEnforce:
		return fmt.Sprintf("; policy %s takes none", v1alpha1.ServerMaintenancePolicyOwnerApproval)
	}
	return "; what it boots could read the data on the server's disks"
}

// checkServer: what is booted is booted on the server that is handed over, and that stays the same.
func checkServer(c review.Change[v1alpha1.ServerMaintenance], found *review.Findings) {
	if !c.Created() && equality.Semantic.DeepEqual(c.Old.Spec, c.New.Spec) {
		return
	}
	checkTemplate(c, found)
	checkPolicy(c, found)
	name := c.New.Spec.ServerRef.Name
	if t := c.New.Spec.ServerBootConfigurationTemplate; t != nil && t.Spec.ServerRef.Name != name {
		found.Deny(field.Invalid(paths[rights.VerbBoot].Child("spec", "serverRef", "name"), t.Spec.ServerRef.Name,
			fmt.Sprintf("it has to be the server of the maintenance; write %q", name)))
	}
	if c.Created() || c.Old.Spec.ServerRef.Name == name || !granted(c.Old) || allowsUpdate(c.New) {
		return
	}
	found.Deny(field.Forbidden(paths[rights.VerbMaintain], fmt.Sprintf(
		"the maintenance has server %q; make another maintenance for %q, or set annotation %s: %s",
		c.Old.Spec.ServerRef.Name, name, v1alpha1.OperationAnnotation, v1alpha1.OperationAllowInProgressUpdate)))
}

// checkTemplate: that a maintenance boots nothing, or that it boots something, is what the holder of the claim approved, and what
// the machine is shut down for in the end.
func checkTemplate(c review.Change[v1alpha1.ServerMaintenance], found *review.Findings) {
	if c.Created() || !granted(c.Old) {
		return
	}
	if boots, booted := c.New.Spec.ServerBootConfigurationTemplate != nil, c.Old.Spec.ServerBootConfigurationTemplate != nil; boots != booted {
		found.Deny(field.Forbidden(paths[rights.VerbBoot],
			"the maintenance has its server, which was handed over for it with or without a boot; delete it and make another"))
	}
}

// checkPolicy: the holder who was asked for approval was given no notice of an enforced maintenance.
func checkPolicy(c review.Change[v1alpha1.ServerMaintenance], found *review.Findings) {
	enforced := v1alpha1.ServerMaintenancePolicyEnforced
	if !c.Created() && c.Old.Status.Asked != nil && c.Old.Spec.Policy != enforced && c.New.Spec.Policy == enforced {
		found.Deny(field.Forbidden(paths[rights.VerbEnforce],
			"the holder was asked for approval, and was given no notice; delete the maintenance and make an enforced one"))
	}
}

// granted says that the server was handed over to the maintenance.
func granted(m *v1alpha1.ServerMaintenance) bool {
	return m.Status.State == v1alpha1.ServerMaintenanceStateInMaintenance || m.Status.GrantedAt != nil
}

// allowsUpdate: what allows a deletion allows a change as well, as in released metal-operators.
func allowsUpdate(o client.Object) bool {
	operation := o.GetAnnotations()[v1alpha1.OperationAnnotation]
	return operation == v1alpha1.OperationAllowInProgressUpdate || operation == v1alpha1.OperationAllowInProgressDelete
}

func checkExpectedDuration(c review.Change[v1alpha1.ServerMaintenance], found *review.Findings) {
	value, set := review.Written(c.Old, c.New, v1alpha1.ExpectedDurationAnnotation)
	if !set {
		return
	}
	if d, err := time.ParseDuration(value); err != nil || d < shortestExpected || d > longestExpected {
		found.Deny(field.Invalid(review.AnnotationsPath.Key(v1alpha1.ExpectedDurationAnnotation), value,
			"write a duration from 1m to 720h, such as 45m or 1h30m"))
	}
}

// Judge looks up what check needs.
func (l *Rules) Judge(
	ctx context.Context, c review.Change[v1alpha1.ServerMaintenance], found *review.Findings, _ map[string]any,
) (err error) {
	var f facts
	if madeAnew(c) {
		if f, err = l.lookUp(ctx, c); err != nil {
			return err
		}
	}
	check(c, f, found)
	return nil
}

// lookUp asks for the rights that the maintenance takes by what the cache knows, and before a denial by what is stored.
func (l *Rules) lookUp(ctx context.Context, c review.Change[v1alpha1.ServerMaintenance]) (f facts, err error) {
	var asked []rights.Right
	for _, from := range [][]client.Reader{{l.Cache, l.Reader}, {l.Reader}} {
		server, needed, err := l.needed(ctx, c.New, from)
		if err != nil {
			return f, err
		}
		f.unknown = server == nil
		if asked != nil && slices.Equal(asked, needed) {
			return f, nil
		}
		asked, f.lacks = needed, nil
		for _, right := range needed {
			may, err := l.May(ctx, c.User, right.Attributes())
			if err != nil {
				return f, err
			}
			if !may {
				f.lacks = append(f.lacks, right)
			}
		}
		if len(f.lacks) == 0 {
			return f, nil
		}
	}
	return f, nil
}

// needed are the rights that a maintenance takes, by what the first of some readers that knows an object says of it.
func (l *Rules) needed(
	ctx context.Context, m *v1alpha1.ServerMaintenance, from []client.Reader,
) (server *v1alpha1.Server, needed []rights.Right, err error) {
	if server, err = review.Get[v1alpha1.Server](ctx, client.ObjectKey{Name: m.Spec.ServerRef.Name}, from...); err != nil || server == nil {
		return nil, rights.Needed(m, nil, nil, false), err
	}
	var claim *v1alpha1.ServerClaim
	if ref := server.Spec.ServerClaimRef; ref != nil && ref.Namespace == m.Namespace {
		if claim, err = review.Get[v1alpha1.ServerClaim](ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, from...); err != nil {
			return nil, nil, err
		}
	}
	var data string
	if m.Spec.ServerBootConfigurationTemplate != nil {
		if data, err = l.DataOf(ctx, server); err != nil {
			return nil, nil, err
		}
	}
	return server, rights.Needed(m, server, claim, data != ""), nil
}
