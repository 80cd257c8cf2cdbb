// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/internal/restored"
)

// MaxPriority caps v1alpha1.PriorityAnnotation in both directions.
const MaxPriority = bundle.MaxPriority

// RackMetadata is the annotation (or label) of a Server that names its rack; the metadata service exports it too.
const RackMetadata = v1alpha1.MetadataAnnotationPrefix + "rack"

// CandidateOf is what a selection policy may know of a server. What the agent did not report is taken from what the BMC
// says, where it says it.
func CandidateOf(s *v1alpha1.Server, h Hardware) selection.Candidate {
	h = h.FilledFrom(s)
	c := selection.Candidate{
		Name:          s.Name,
		Labels:        s.Labels,
		Taints:        taintsOf(s),
		Manufacturer:  s.Status.Manufacturer,
		Model:         s.Status.Model,
		SKU:           s.Status.SKU,
		BIOSVersion:   s.Status.BIOSVersion,
		CPUModel:      h.CPUModel,
		CPUCount:      h.CPUCount,
		Cores:         h.Cores,
		MemoryGiB:     h.MemoryBytes >> 30,
		DiskCount:     h.DiskCount,
		Disks:         h.Disks,
		DiskMinBytes:  h.DiskMinBytes,
		DiskMaxBytes:  h.DiskMaxBytes,
		DiskBytes:     h.DiskBytes,
		NICCount:      h.NICCount,
		NICMaxSpeed:   h.NICMaxSpeed,
		NICTotalSpeed: h.NICTotalSpeed,
		GPUs:          h.GPUs,
		Health:        HealthOf(s),
		Zone:          s.Labels[v1alpha1.ZoneLabel],
		Region:        s.Labels[v1alpha1.RegionLabel],
		Rack:          RackOf(s),
		InstanceType:  s.Labels[v1alpha1.InstanceTypeLabel],
		TimesClaimed:  h.TimesClaimed,
	}
	if l := s.Status.Lifecycle; l != nil && s.Status.State == v1alpha1.StateAvailable {
		c.AvailableSince = l.EnteredAt.Unix()
	}
	return c
}

// healthReasons are the reasons of the condition Healthy, by what the BMC says of the machine.
var healthReasons = map[string]string{
	"OK": v1alpha1.ReasonHealthOK, "Warning": v1alpha1.ReasonHealthWarning, "Critical": v1alpha1.ReasonHealthCritical,
}

// HealthOf is the health that a BMC reported last of a server's machine, in the words of the facts; Unknown where it never did.
func HealthOf(s *v1alpha1.Server) string {
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionHealthy); c != nil {
		if c.Reason == v1alpha1.ReasonHealthTolerated {
			return healthWarning
		}
		for health, reason := range healthReasons {
			if reason == c.Reason {
				return health
			}
		}
	}
	return unknown
}

// RackOf is the rack of a server; empty if it is not known.
func RackOf(s *v1alpha1.Server) string {
	if rack := s.Annotations[RackMetadata]; rack != "" {
		return rack
	}
	return s.Labels[RackMetadata]
}

// ServerStateOf is what the hard contract looks at. A server that a user asked to be left alone counts as cordoned,
// because nothing would be done for a claim on it.
func ServerStateOf(s *v1alpha1.Server) selection.ServerState {
	state := selection.ServerState{
		Name:        s.Name,
		Labels:      s.Labels,
		State:       string(s.Status.State),
		Power:       string(s.Status.PowerState),
		Taints:      taintsOf(s),
		Claimed:     s.Spec.ServerClaimRef != nil,
		Unclaimable: s.Spec.Unclaimable || v1alpha1.Ignored(s) || restored.Marked(s),
		InService:   s.Spec.ServerMaintenanceRef != nil,
		Parking:     v1alpha1.ToBeParked(s),
		Deleting:    !s.DeletionTimestamp.IsZero(),
	}
	state.Dirty = s.Status.Lifecycle != nil && slices.Contains(s.Status.Lifecycle.Marks, MarkDirty)
	return state
}

func taintsOf(s *v1alpha1.Server) []selection.Taint {
	if len(s.Spec.Taints) == 0 {
		return nil
	}
	taints := make([]selection.Taint, len(s.Spec.Taints))
	for i, t := range s.Spec.Taints {
		taints[i] = selection.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)}
	}
	return taints
}

// ClaimSpecOf is what the hard contract asks of a server for a claim. The error names the part of serverSelector that has
// no meaning, or is a LimitError.
func ClaimSpecOf(c *v1alpha1.ServerClaim) (selection.ClaimSpec, error) {
	if err := withinLimits(c); err != nil {
		return selection.ClaimSpec{}, err
	}
	spec := selection.ClaimSpec{Tolerations: tolerationsOf(c)}
	if c.Spec.ServerRef != nil {
		spec.ServerRef = c.Spec.ServerRef.Name
	}
	if c.Spec.ServerSelector == nil {
		return spec, nil
	}
	spec.Selector = &selection.Selector{MatchLabels: c.Spec.ServerSelector.MatchLabels}
	for _, e := range c.Spec.ServerSelector.MatchExpressions {
		spec.Selector.MatchExpressions = append(spec.Selector.MatchExpressions,
			selection.Expression{Key: e.Key, Operator: string(e.Operator), Values: e.Values})
	}
	if err := spec.Selector.Validate(); err != nil {
		return spec, fmt.Errorf("spec.serverSelector: %w", err)
	}
	if _, err := metav1.LabelSelectorAsSelector(c.Spec.ServerSelector); err != nil {
		return spec, fmt.Errorf("spec.serverSelector: %w", err)
	}
	return spec, nil
}

// ClaimOf is a claim as the solver sees it, with the priority that the bundle grants.
func ClaimOf(c *v1alpha1.ServerClaim, granted bundle.Priority, now time.Time) *claims.Claim {
	one := claims.Claim{Key: claims.Key{Namespace: c.Namespace, Name: c.Name},
		UID: cmp.Or(string(c.UID), "new/"+c.Namespace+"/"+c.Name), Labels: c.Labels,
		Asked: SelectionClaimOf(c), Wants: PriorityOf(c), HadServer: HadServer(c), Open: Open(c), Ending: !c.DeletionTimestamp.IsZero(),
		Created: c.CreationTimestamp.Time}
	if c.Spec.ServerRef != nil {
		one.ServerRef = c.Spec.ServerRef.Name
	}
	var err error
	if one.Spec, err = ClaimSpecOf(c); err != nil {
		one.Invalid = err.Error()
	}
	if others, asks := WithoutInventory(one.Spec.Selector); asks && one.Spec.ServerRef == "" {
		beside := one.Spec
		beside.Selector, one.Beside = others, &beside
	}
	var found diag.List
	if one.Placement, found = PlacementOf(c); found.Err() != nil {
		one.Placement, one.Unplaced = nil, firstError(found)
	}
	return Grant(claims.New(one), granted, now)
}

// Grant is a claim with the priority that a bundle grants of the one that it asks for.
func Grant(c *claims.Claim, granted bundle.Priority, now time.Time) *claims.Claim {
	one := *c
	one.Asked.Priority = granted.Grant(c.Namespace, c.Wants)
	one.Rank = granted.Aged(one.Asked.Priority, now.Sub(c.Created))
	return &one
}

func firstError(found diag.List) string {
	for _, f := range found {
		if f.Severity == diag.Error {
			return f.String()
		}
	}
	return ""
}

// SelectionClaimOf is what a selection policy may know of a claim.
func SelectionClaimOf(c *v1alpha1.ServerClaim) selection.Claim {
	claim := selection.Claim{
		Namespace:   c.Namespace,
		Name:        c.Name,
		Labels:      c.Labels,
		Annotations: c.Annotations,
		Priority:    PriorityOf(c),
		Image:       c.Spec.Image,
		Power:       string(c.Spec.Power),
		Tolerations: tolerationsOf(c),
	}
	if c.Spec.ServerRef != nil {
		claim.ServerRef = c.Spec.ServerRef.Name
	}
	if c.Spec.ServerSelector != nil {
		claim.Selector = c.Spec.ServerSelector.MatchLabels
	}
	return claim
}

func tolerationsOf(c *v1alpha1.ServerClaim) []selection.Toleration {
	if len(c.Spec.Tolerations) == 0 {
		return nil
	}
	tolerations := make([]selection.Toleration, len(c.Spec.Tolerations))
	for i, t := range c.Spec.Tolerations {
		tolerations[i] = selection.Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect)}
	}
	return tolerations
}

// PriorityOf reads v1alpha1.PriorityAnnotation, capped; what is not a whole number counts as 0.
func PriorityOf(c *v1alpha1.ServerClaim) int64 {
	n, err := strconv.ParseInt(c.Annotations[v1alpha1.PriorityAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return max(-MaxPriority, min(MaxPriority, n))
}
