// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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

// maintenancePaths are the fields that a right is needed for, by its verb.
var maintenancePaths = map[string]*field.Path{
	rights.VerbMaintain: field.NewPath("spec", "serverRef"),
	rights.VerbEnforce:  field.NewPath("spec", "policy"),
	rights.VerbBoot:     field.NewPath("spec", "serverBootConfigurationTemplate"),
}

// maintenanceAnnotations are those of annotationPrefix that are read on a ServerMaintenance; admission writes the last.
var maintenanceAnnotations = []string{
	v1alpha1.ExpectedDurationAnnotation, v1alpha1.AbortAnnotation, v1alpha1.ForceOffReasonAnnotation, v1alpha1.PlanOnlyAnnotation,
	v1alpha1.AdoptAnnotation, v1alpha1.MakerAnnotation,
}

// maintenanceFacts is what was looked up for a ServerMaintenance.
type maintenanceFacts struct {
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
	adopted, set := written(c.Old, c.New, v1alpha1.AdoptAnnotation)
	return c.Created() || set && adopted == "true" || !equality.Semantic.DeepEqual(c.Old.Spec, c.New.Spec)
}

// checkMaintenance holds what a user writes against the rules. A deletion ends a maintenance, and anyone who may delete may end it.
func checkMaintenance(c review.Change[v1alpha1.ServerMaintenance], f maintenanceFacts, found *review.Findings) {
	if c.Deleted() || c.ByManager || c.Status {
		return
	}
	checkMaker(c, found)
	for _, right := range f.lacks {
		found.Deny(field.Forbidden(maintenancePaths[right.Verb], right.Lacks(c.User.Username)+whyNeeded(right, c.New)))
	}
	checkMaintenanceServer(c, found)
	checkExpectedDuration(c, found)
	checkReason(c, v1alpha1.AbortAnnotation, "say why it is to stop; the maintenance keeps it", found)
	checkReason(c, v1alpha1.ForceOffReasonAnnotation, "say why the power may be cut; a tool may be writing firmware", found)
	for _, name := range []string{v1alpha1.AdoptAnnotation, v1alpha1.PlanOnlyAnnotation} {
		checkYesNo(c.Old, c.New, name, found)
	}
	checkAnnotationNames(c.Old, c.New, "ServerMaintenance", maintenanceAnnotations, found)
	if f.unknown {
		found.Warn("%s: there is no Server %q; the maintenance waits until there is", maintenancePaths[rights.VerbMaintain], c.New.Spec.ServerRef.Name)
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

// checkMaintenanceServer: what is booted is booted on the server that is handed over, and that stays the same.
func checkMaintenanceServer(c review.Change[v1alpha1.ServerMaintenance], found *review.Findings) {
	if !c.Created() && equality.Semantic.DeepEqual(c.Old.Spec, c.New.Spec) {
		return
	}
	name := c.New.Spec.ServerRef.Name
	if t := c.New.Spec.ServerBootConfigurationTemplate; t != nil && t.Spec.ServerRef.Name != name {
		found.Deny(field.Invalid(maintenancePaths[rights.VerbBoot].Child("spec", "serverRef", "name"), t.Spec.ServerRef.Name,
			fmt.Sprintf("it has to be the server of the maintenance; write %q", name)))
	}
	if c.Created() || c.Old.Spec.ServerRef.Name == name || !granted(c.Old) || allowsUpdate(c.New) {
		return
	}
	found.Deny(field.Forbidden(maintenancePaths[rights.VerbMaintain], fmt.Sprintf(
		"the maintenance has server %q; make another maintenance for %q, or set annotation %s: %s",
		c.Old.Spec.ServerRef.Name, name, v1alpha1.OperationAnnotation, v1alpha1.OperationAllowInProgressUpdate)))
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
	value, set := written(c.Old, c.New, v1alpha1.ExpectedDurationAnnotation)
	if !set {
		return
	}
	if d, err := time.ParseDuration(value); err != nil || d < shortestExpected || d > longestExpected {
		found.Deny(field.Invalid(review.AnnotationsPath.Key(v1alpha1.ExpectedDurationAnnotation), value,
			"write a duration from 1m to 720h, such as 45m or 1h30m"))
	}
}

// checkReason refuses a reason that says nothing, or more than can be kept.
func checkReason(c review.Change[v1alpha1.ServerMaintenance], name, remedy string, found *review.Findings) {
	value, set := written(c.Old, c.New, name)
	path := review.AnnotationsPath.Key(name)
	switch {
	case !set:
	case strings.TrimSpace(value) == "":
		found.Deny(field.Required(path, remedy))
	case utf8.RuneCountInString(value) > maxReason:
		err := field.TooLong(path, "", maxReason)
		err.Detail = fmt.Sprintf("may not be longer than %d characters", maxReason)
		found.Deny(err)
	}
}

// judgeMaintenance looks up what checkMaintenance needs.
func (l *maintenanceRules) judgeMaintenance(
	ctx context.Context, c review.Change[v1alpha1.ServerMaintenance], found *review.Findings, _ map[string]any,
) (err error) {
	var f maintenanceFacts
	if madeAnew(c) {
		if f, err = l.lookUp(ctx, c); err != nil {
			return err
		}
	}
	checkMaintenance(c, f, found)
	return nil
}

// lookUp asks for the rights that the maintenance takes by what the cache knows, and before a denial by what is stored.
func (l *maintenanceRules) lookUp(ctx context.Context, c review.Change[v1alpha1.ServerMaintenance]) (f maintenanceFacts, err error) {
	var asked []rights.Right
	for _, from := range [][]client.Reader{{l.cache, l.reader}, {l.reader}} {
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
			may, err := l.may(ctx, c.User, right.Attributes())
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
func (l *maintenanceRules) needed(
	ctx context.Context, m *v1alpha1.ServerMaintenance, from []client.Reader,
) (server *v1alpha1.Server, needed []rights.Right, err error) {
	if server, err = getFrom[v1alpha1.Server](ctx, from, client.ObjectKey{Name: m.Spec.ServerRef.Name}); err != nil || server == nil {
		return nil, rights.Needed(m, nil, nil, false), err
	}
	var claim *v1alpha1.ServerClaim
	if ref := server.Spec.ServerClaimRef; ref != nil && ref.Namespace == m.Namespace {
		if claim, err = getFrom[v1alpha1.ServerClaim](ctx, from, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}); err != nil {
			return nil, nil, err
		}
	}
	var data string
	if m.Spec.ServerBootConfigurationTemplate != nil {
		if data, err = l.dataOf(ctx, server); err != nil {
			return nil, nil, err
		}
	}
	return server, rights.Needed(m, server, claim, data != ""), nil
}
