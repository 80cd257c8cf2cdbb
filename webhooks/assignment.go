// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"maps"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bmcsystems"
	"github.com/metalaw/metalaw/webhooks/review"
)

const (
	// assigner is the ClusterRole of the shipped manifests that holds verbAssign.
	assigner   = "metalaw-uuid-assigner"
	verbAssign = "assign-uuid"
)

var assignmentPath = review.AnnotationsPath.Key(v1alpha1.SystemUUIDsAnnotation)

// assignmentFacts is what was looked up for a change of the UUIDs that a BMC assigns to its systems.
type assignmentFacts struct {
	// mayAssign says that the user holds verbAssign on the BMC.
	mayAssign bool
	// data says, by an assigned UUID that changes or goes, why its Server is taken to hold somebody's data.
	data map[string]string
	// taken says, by a UUID whose entry is new or changes, who has it already, or knows its machine by other hardware.
	taken map[string]string
}

// assigns says that a change writes, changes or takes away assigned UUIDs.
func assigns(c review.Change[v1alpha1.BMC]) bool {
	if c.Deleted() || c.ByManager {
		return false
	}
	was := ""
	if c.Old != nil {
		was = c.Old.Annotations[v1alpha1.SystemUUIDsAnnotation]
	}
	return c.New.Annotations[v1alpha1.SystemUUIDsAnnotation] != was
}

// assignments reads what a BMC assigns; what is stored and cannot be read assigns nothing.
func assignments(b *v1alpha1.BMC) (bmcsystems.Assignments, error) {
	if b == nil {
		return nil, nil
	}
	return bmcsystems.ParseAssignments(b.Annotations[v1alpha1.SystemUUIDsAnnotation])
}

// checkAssignments: an assigned UUID is one machine's in the whole fleet, and stays with its machine while that is held or Dirty.
func checkAssignments(c review.Change[v1alpha1.BMC], f assignmentFacts, found *review.Findings) {
	if !assigns(c) {
		return
	}
	if !f.mayAssign {
		found.Deny(field.Forbidden(assignmentPath, fmt.Sprintf("user %q may not assign UUIDs to systems: that takes the verb %s on bmcs.%s, "+
			"which ClusterRole %s gives", c.User.Username, verbAssign, v1alpha1.GroupVersion.Group, assigner)))
		return
	}
	is, err := assignments(c.New)
	if err != nil {
		found.Deny(field.Invalid(assignmentPath, c.New.Annotations[v1alpha1.SystemUUIDsAnnotation], err.Error()))
		return
	}
	was, _ := assignments(c.Old)
	for _, uri := range slices.Sorted(maps.Keys(was)) {
		if why := f.data[was[uri].UUID]; why != "" && !sameMachine(was[uri].UUID, is[uri].UUID) {
			found.Deny(field.Forbidden(assignmentPath, fmt.Sprintf("the system %s stands for machine %s, and %s; keep its UUID "+
				"until the machine is released and wiped", uri, was[uri].UUID, why)))
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(is)) {
		if who := f.taken[is[uri].UUID]; who != "" {
			found.Deny(field.Invalid(assignmentPath, is[uri].UUID,
				fmt.Sprintf("%s; assign the UUID that the machine shows in SMBIOS, or a new one", who)))
		}
	}
}

// judgeAssignments looks up what checkAssignments needs.
func (l *bmcRules) judgeAssignments(ctx context.Context, c review.Change[v1alpha1.BMC]) (f assignmentFacts, err error) {
	if !assigns(c) {
		return f, nil
	}
	f.mayAssign, err = l.may(ctx, c.User, authorizationv1.ResourceAttributes{
		Verb: verbAssign, Group: v1alpha1.GroupVersion.Group, Resource: "bmcs", Name: c.New.Name})
	is, unread := assignments(c.New)
	if err != nil || !f.mayAssign || unread != nil {
		return f, err
	}
	was, _ := assignments(c.Old)
	f.data, f.taken = map[string]string{}, map[string]string{}
	for uri, a := range was {
		if sameMachine(a.UUID, is[uri].UUID) {
			continue
		}
		if f.data[a.UUID], err = l.dataBehind(ctx, c.New.Name, a.UUID); err != nil {
			return f, err
		}
	}
	for uri, a := range is {
		if a == was[uri] {
			continue
		}
		stays := sameMachine(was[uri].UUID, a.UUID)
		known, err := l.onRecord(ctx, a.UUID)
		if err != nil {
			return f, err
		}
		f.taken[a.UUID] = misfit(known, a, stays && !sharesSerial(is, uri))
		if stays || f.taken[a.UUID] != "" {
			continue
		}
		if f.taken[a.UUID], err = l.whoHas(ctx, c, a); err != nil {
			return f, err
		}
	}
	return f, nil
}

// dataBehind says why the Server that a BMC's assigned UUID stands for holds data; empty where it does not, or is none.
func (l *bmcRules) dataBehind(ctx context.Context, bmc, uuid string) (string, error) {
	servers, err := l.standIns(ctx, uuid)
	if err != nil {
		return "", err
	}
	for _, s := range servers {
		if bmcOf(s.Spec.BMCRef) != bmc {
			continue
		}
		if why, err := l.dataOf(ctx, s); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// whoHas says which Server, inventory or other BMC has a UUID that is assigned anew; empty where none has.
func (l *bmcRules) whoHas(ctx context.Context, c review.Change[v1alpha1.BMC], a bmcsystems.Assignment) (string, error) {
	servers, err := l.standIns(ctx, a.UUID)
	if err != nil {
		return "", err
	}
	for _, s := range servers {
		if s.Spec.BMCRef == nil && s.Spec.BMC == nil || bmcOf(s.Spec.BMCRef) == c.New.Name {
			continue
		}
		if other, err := l.bmcExists(ctx, s); other || err != nil {
			return fmt.Sprintf("Server %q has it", s.Name), err
		}
	}
	return l.bmcAssigns(ctx, c, a.UUID)
}

// bmcExists says that a Server is reached through a BMC that exists. What was behind one that is gone may come behind another.
func (l *bmcRules) bmcExists(ctx context.Context, s *v1alpha1.Server) (bool, error) {
	if s.Spec.BMCRef == nil {
		return true, nil // it has an access of its own
	}
	b, err := get[v1alpha1.BMC](ctx, l.lookup, s.Spec.BMCRef.Name)
	return b != nil, err
}

// bmcAssigns says that another BMC assigns a UUID.
func (l *bmcRules) bmcAssigns(ctx context.Context, c review.Change[v1alpha1.BMC], uuid string) (string, error) {
	has := func(b *v1alpha1.BMC) bool {
		assigned, _ := assignments(b)
		return slices.ContainsFunc(slices.Collect(maps.Values(assigned)), func(a bmcsystems.Assignment) bool { return sameMachine(a.UUID, uuid) })
	}
	var list v1alpha1.BMCList
	if err := l.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("the BMCs cannot be listed: %w", err)
	}
	var cached []string
	for i := range list.Items {
		if has(&list.Items[i]) {
			cached = append(cached, list.Items[i].Name)
		}
	}
	rival, err := reserve(ctx, l.lookup, c, question[v1alpha1.BMC]{
		key: "bmc/assigned/" + machineKey(uuid), cached: cached, has: has,
	})
	if rival == nil || err != nil {
		return "", err
	}
	return duplicate(assignmentPath, uuid, "BMC", rival).Detail, nil
}

// checkHostMACs refuses MAC addresses that cannot be read.
func checkHostMACs(c review.Change[v1alpha1.BMC], found *review.Findings) {
	text, set := review.Written(c.Old, c.New, v1alpha1.HostMACsAnnotation)
	if !set {
		return
	}
	if _, err := bmcsystems.ParseMACs(text); err != nil {
		found.Deny(field.Invalid(review.AnnotationsPath.Key(v1alpha1.HostMACsAnnotation), text, err.Error()))
	}
}
