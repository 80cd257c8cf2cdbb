// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/selection"
)

// MaxPriority caps v1alpha1.PriorityAnnotation in both directions.
const MaxPriority = bundle.MaxPriority

// RackMetadata is the annotation (or label) of a Server that names its rack; the metadata service exports it too.
const RackMetadata = v1alpha1.MetadataAnnotationPrefix + "rack"

// Hardware is what the agent's last report says of a machine, summarised for choosing among servers. The zero value is a
// machine that never reported.
type Hardware struct {
	CPUCount, Cores, MemoryBytes int64
	DiskCount                    int64
	DiskBytes                    selection.DiskBytes
	NICCount, NICMaxSpeed        int64
}

// HardwareOf summarises a report; inv may be nil.
func HardwareOf(inv *policyv1alpha1.ServerInventory) Hardware {
	if inv == nil || inv.Report == nil {
		return Hardware{}
	}
	data := inv.Report.Data
	h := Hardware{CPUCount: int64(len(data.CPU))}
	for _, cpu := range data.CPU {
		h.Cores += int64(cpu.TotalCores)
	}
	for _, module := range data.Memory {
		h.MemoryBytes += module.SizeBytes
	}
	for _, disk := range data.Storage {
		if disk.Removable {
			continue
		}
		kind := "SSD"
		switch {
		case strings.HasPrefix(disk.Name, "nvme"), strings.HasPrefix(disk.Path, "/dev/nvme"):
			kind = "NVMe"
		case disk.Rotational:
			kind = "HDD"
		}
		h.addDisk(kind, disk.SizeBytes)
	}
	h.NICCount = int64(len(data.NICs))
	for _, nic := range data.NICs {
		h.NICMaxSpeed = max(h.NICMaxSpeed, megabits(nic.Speed))
	}
	return h
}

func (h *Hardware) addDisk(kind string, bytes int64) {
	h.DiskCount++
	h.DiskBytes.Total += bytes
	switch {
	case strings.EqualFold(kind, "NVMe"):
		h.DiskBytes.NVMe += bytes
	case strings.EqualFold(kind, "HDD"):
		h.DiskBytes.HDD += bytes
	default:
		h.DiskBytes.SSD += bytes
	}
}

// megabits reads a link speed such as 25000Mb/s; what has another form is 0, not known.
func megabits(speed string) int64 {
	digits, ok := strings.CutSuffix(speed, "Mb/s")
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// CandidateOf is what a selection policy may know of a server. What the agent did not report is taken from what the BMC
// says, where it says it.
func CandidateOf(s *v1alpha1.Server, h Hardware) selection.Candidate {
	h.fillFrom(s.Status)
	c := selection.Candidate{
		Name:         s.Name,
		Labels:       s.Labels,
		Taints:       taintsOf(s),
		Manufacturer: s.Status.Manufacturer,
		Model:        s.Status.Model,
		SKU:          s.Status.SKU,
		CPUCount:     h.CPUCount,
		Cores:        h.Cores,
		MemoryGiB:    h.MemoryBytes >> 30,
		DiskCount:    h.DiskCount,
		DiskBytes:    h.DiskBytes,
		NICCount:     h.NICCount,
		NICMaxSpeed:  h.NICMaxSpeed,
		Health:       unknown, // the Server's status does not say it yet
		Zone:         s.Labels[v1alpha1.ZoneLabel],
		Region:       s.Labels[v1alpha1.RegionLabel],
		Rack:         RackOf(s),
		InstanceType: s.Labels[v1alpha1.InstanceTypeLabel],
	}
	for _, p := range s.Status.Processors {
		if strings.EqualFold(p.Type, "GPU") {
			c.GPUs++
		}
	}
	if l := s.Status.Lifecycle; l != nil {
		if s.Status.State == v1alpha1.StateAvailable {
			c.AvailableSince = l.EnteredAt.Unix()
		}
		for _, move := range l.History {
			if move.To == v1alpha1.StateReserved {
				c.TimesClaimed++
			}
		}
	}
	return c
}

// fillFrom takes from the BMC's inventory what the agent did not say.
func (h *Hardware) fillFrom(status v1alpha1.ServerStatus) {
	if h.Cores == 0 {
		h.CPUCount = 0
		for _, p := range status.Processors {
			if p.Type == "" || strings.EqualFold(p.Type, "CPU") {
				h.CPUCount++
				h.Cores += int64(p.TotalCores)
			}
		}
	}
	if h.MemoryBytes == 0 && status.TotalSystemMemory != nil {
		h.MemoryBytes = status.TotalSystemMemory.Value()
	}
	if h.NICCount == 0 {
		h.NICCount = int64(len(status.NetworkInterfaces))
	}
	if h.DiskCount > 0 {
		return
	}
	for _, storage := range status.Storages {
		for _, drive := range storage.Drives {
			if drive.State == v1alpha1.StorageStateAbsent {
				continue
			}
			kind := drive.MediaType
			if strings.EqualFold(drive.Type, "NVMe") {
				kind = drive.Type
			}
			var bytes int64
			if drive.Capacity != nil {
				bytes = drive.Capacity.Value()
			}
			h.addDisk(kind, bytes)
		}
	}
}

// RackOf is the rack of a server; empty where nobody said.
func RackOf(s *v1alpha1.Server) string {
	if rack := s.Annotations[RackMetadata]; rack != "" {
		return rack
	}
	return s.Labels[RackMetadata]
}

// ServerStateOf is what the hard contract looks at. A server that somebody asked to be left alone counts as cordoned,
// because nothing would be done for a claim on it.
func ServerStateOf(s *v1alpha1.Server) selection.ServerState {
	state := selection.ServerState{
		Name:        s.Name,
		Labels:      s.Labels,
		State:       string(s.Status.State),
		Power:       string(s.Status.PowerState),
		Taints:      taintsOf(s),
		Claimed:     s.Spec.ServerClaimRef != nil,
		Unclaimable: s.Spec.Unclaimable || v1alpha1.Ignored(s),
		InService:   s.Spec.ServerMaintenanceRef != nil,
		Deleting:    !s.DeletionTimestamp.IsZero(),
	}
	if s.Status.Lifecycle != nil {
		for _, mark := range s.Status.Lifecycle.Marks {
			state.Dirty = state.Dirty || mark == MarkDirty
		}
	}
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
// no meaning.
func ClaimSpecOf(c *v1alpha1.ServerClaim) (selection.ClaimSpec, error) {
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
