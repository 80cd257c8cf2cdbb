// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/internal/regonative"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// subject is what rules are evaluated on natively.
type subject struct {
	claim     *Claim
	candidate *Candidate
	fleet     *Fleet
}

type (
	field = regonative.Field
	value = regonative.Value
)

// The scopes of fields are the first keys that lead to them.
const (
	ofClaim     = "claim"
	ofCandidate = "candidate"
	ofFleet     = "fleet"
)

// fields are all parts of the input, by their keys joined with dots.
var fields = func() map[string]*field {
	all := map[string]*field{}
	for _, f := range slices.Concat(claimFields(), candidateFields(), fleetFields()) {
		f.Always, f.Varies = true, f.Keys[0] == ofCandidate
		all[strings.Join(f.Keys, ".")] = f
	}
	return all
}()

func text(scope, name string, get func(*subject) string) *field {
	return &field{Keys: []string{scope, name}, Plain: true, Text: true,
		Get: func(in any) (value, bool) { return regonative.Text(get(in.(*subject))), true }}
}

func number(scope, name string, get func(*subject) int64) *field {
	return &field{Keys: append([]string{scope}, strings.Split(name, ".")...), Plain: true,
		Get: func(in any) (value, bool) { return regonative.Int(get(in.(*subject))), true }}
}

func texts(scope, name string, get func(*subject) map[string]string) *field {
	return &field{Keys: []string{scope, name}, Get: func(in any) (value, bool) { return regonative.Texts(get(in.(*subject))), true }}
}

func counts(name string, get func(*subject) map[string]int64) *field {
	return &field{Keys: []string{ofFleet, name}, Get: func(in any) (value, bool) { return regonative.Counts(get(in.(*subject))), true }}
}

func list[T any](scope, name string, get func(*subject) []T) *field {
	return &field{Keys: []string{scope, name},
		Get: func(in any) (value, bool) { return regonative.Of(regosandbox.Value(get(in.(*subject))).Value), true }}
}

func claimFields() []*field {
	return []*field{
		text(ofClaim, "namespace", func(s *subject) string { return s.claim.Namespace }),
		text(ofClaim, "name", func(s *subject) string { return s.claim.Name }),
		texts(ofClaim, "labels", func(s *subject) map[string]string { return s.claim.Labels }),
		texts(ofClaim, "annotations", func(s *subject) map[string]string { return s.claim.Annotations }),
		number(ofClaim, "priority", func(s *subject) int64 { return s.claim.Priority }),
		text(ofClaim, "image", func(s *subject) string { return s.claim.Image }),
		text(ofClaim, "power", func(s *subject) string { return s.claim.Power }),
		text(ofClaim, "serverRef", func(s *subject) string { return s.claim.ServerRef }),
		texts(ofClaim, "selector", func(s *subject) map[string]string { return s.claim.Selector }),
		list(ofClaim, "tolerations", func(s *subject) []Toleration { return s.claim.Tolerations }),
	}
}

func candidateFields() []*field {
	return []*field{
		text(ofCandidate, "name", func(s *subject) string { return s.candidate.Name }),
		texts(ofCandidate, "labels", func(s *subject) map[string]string { return s.candidate.Labels }),
		list(ofCandidate, "taints", func(s *subject) []Taint { return s.candidate.Taints }),
		text(ofCandidate, "manufacturer", func(s *subject) string { return s.candidate.Manufacturer }),
		text(ofCandidate, "model", func(s *subject) string { return s.candidate.Model }),
		text(ofCandidate, "sku", func(s *subject) string { return s.candidate.SKU }),
		text(ofCandidate, "biosVersion", func(s *subject) string { return s.candidate.BIOSVersion }),
		text(ofCandidate, "cpuModel", func(s *subject) string { return s.candidate.CPUModel }),
		number(ofCandidate, "cpuCount", func(s *subject) int64 { return s.candidate.CPUCount }),
		number(ofCandidate, "cores", func(s *subject) int64 { return s.candidate.Cores }),
		number(ofCandidate, "memoryGiB", func(s *subject) int64 { return s.candidate.MemoryGiB }),
		number(ofCandidate, "diskCount", func(s *subject) int64 { return s.candidate.DiskCount }),
		number(ofCandidate, "disks.nvme", func(s *subject) int64 { return s.candidate.Disks.NVMe }),
		number(ofCandidate, "disks.ssd", func(s *subject) int64 { return s.candidate.Disks.SSD }),
		number(ofCandidate, "disks.hdd", func(s *subject) int64 { return s.candidate.Disks.HDD }),
		number(ofCandidate, "diskMinBytes", func(s *subject) int64 { return s.candidate.DiskMinBytes }),
		number(ofCandidate, "diskMaxBytes", func(s *subject) int64 { return s.candidate.DiskMaxBytes }),
		number(ofCandidate, "diskBytes.nvme", func(s *subject) int64 { return s.candidate.DiskBytes.NVMe }),
		number(ofCandidate, "diskBytes.ssd", func(s *subject) int64 { return s.candidate.DiskBytes.SSD }),
		number(ofCandidate, "diskBytes.hdd", func(s *subject) int64 { return s.candidate.DiskBytes.HDD }),
		number(ofCandidate, "diskBytes.total", func(s *subject) int64 { return s.candidate.DiskBytes.Total }),
		number(ofCandidate, "nicCount", func(s *subject) int64 { return s.candidate.NICCount }),
		number(ofCandidate, "nicMaxSpeed", func(s *subject) int64 { return s.candidate.NICMaxSpeed }),
		number(ofCandidate, "nicTotalSpeed", func(s *subject) int64 { return s.candidate.NICTotalSpeed }),
		number(ofCandidate, "gpus", func(s *subject) int64 { return s.candidate.GPUs }),
		text(ofCandidate, "health", func(s *subject) string { return s.candidate.Health }),
		text(ofCandidate, "zone", func(s *subject) string { return s.candidate.Zone }),
		text(ofCandidate, "region", func(s *subject) string { return s.candidate.Region }),
		text(ofCandidate, "rack", func(s *subject) string { return s.candidate.Rack }),
		text(ofCandidate, "instanceType", func(s *subject) string { return s.candidate.InstanceType }),
		number(ofCandidate, "availableSince", func(s *subject) int64 { return s.candidate.AvailableSince }),
		number(ofCandidate, "availableDay", func(s *subject) int64 { return s.candidate.AvailableDay }),
		number(ofCandidate, "timesClaimed", func(s *subject) int64 { return s.candidate.TimesClaimed }),
	}
}

func fleetFields() []*field {
	return []*field{
		number(ofFleet, "now", func(s *subject) int64 { return s.fleet.Now }),
		number(ofFleet, "today", func(s *subject) int64 { return s.fleet.Today }),
		number(ofFleet, "total", func(s *subject) int64 { return s.fleet.Total }),
		number(ofFleet, "claimed", func(s *subject) int64 { return s.fleet.Claimed }),
		counts("totalByZone", func(s *subject) map[string]int64 { return s.fleet.TotalByZone }),
		counts("totalByRack", func(s *subject) map[string]int64 { return s.fleet.TotalByRack }),
		counts("claimedByZone", func(s *subject) map[string]int64 { return s.fleet.ClaimedByZone }),
		counts("claimedByRack", func(s *subject) map[string]int64 { return s.fleet.ClaimedByRack }),
		counts("freeByZone", func(s *subject) map[string]int64 { return s.fleet.FreeByZone }),
		counts("freeByRack", func(s *subject) map[string]int64 { return s.fleet.FreeByRack }),
		counts("namespaceByZone", func(s *subject) map[string]int64 { return s.fleet.NamespaceByZone }),
		counts("namespaceByRack", func(s *subject) map[string]int64 { return s.fleet.NamespaceByRack }),
	}
}

// source finds the field that a rule names, or one key of a field that is an object.
func source(keys []string) *field {
	for n := min(len(keys), 3); n > 0; n-- {
		found := fields[strings.Join(keys[:n], ".")]
		if found == nil {
			continue
		}
		if n == len(keys) || found.Plain {
			return found
		}
		key, whole := regonative.Text(keys[n]), found.Get
		return &field{Keys: slices.Clone(keys[:n+1]), Varies: found.Varies, Get: func(in any) (value, bool) {
			v, ok := whole(in)
			if !ok {
				return v, false
			}
			return v.At(key)
		}}
	}
	return nil
}
