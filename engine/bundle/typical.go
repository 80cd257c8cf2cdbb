// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"maps"

	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/selection"
)

// What the cost of the Rego is measured on has the size of what a fleet has, for what a rule costs that goes through labels grows with them.
const (
	serverLabels     = 16
	claimLabels      = 8
	claimAnnotations = 4
	taints           = 3
	racks            = 8
	zones            = 4
)

// The labels that are fields of a candidate as well.
const (
	labelRegion = "topology.kubernetes.io/region"
	labelZone   = "topology.kubernetes.io/zone"
	labelType   = "metal.ironcore.dev/instance-type"
)

// label is one that says nothing to any rule.
func label(i int) string { return fmt.Sprintf("example.com/label-%d", i) }

// labels are so many, among them the ones that are given.
func labels(most int, value string, given map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, given)
	for i := 0; len(all) < most; i++ {
		all[label(i)] = fmt.Sprintf("%s-%d", value, i)
	}
	return all
}

func numbered(kind string, i int) string { return fmt.Sprintf("%s%d", kind, i+1) }

// typicalServers are so many servers as there are in a fleet, the first of them one of which little is known.
func typicalServers(many int) []*selection.PreparedCandidate {
	kinds := typicalKinds()
	all := make([]*selection.PreparedCandidate, many)
	for i := range all {
		c := selection.Candidate{Health: "OK", Rack: "r1", Cores: 64, MemoryGiB: 512}
		if i > 0 {
			c = kinds[i%zones]
			c.Rack, c.AvailableSince, c.TimesClaimed = numbered("r", i%racks), now-int64(i)*3600, int64(i%5)
		}
		c.Name = fmt.Sprintf("server-%d", i)
		all[i] = selection.NewCandidate(c)
	}
	return all
}

// typicalKinds are the servers of each zone, which share their labels and taints.
func typicalKinds() [zones]selection.Candidate {
	var kinds [zones]selection.Candidate
	for i := range kinds {
		c := selection.Candidate{Health: "OK", Zone: numbered("z", i), Region: "region1", InstanceType: "compute", Cores: 64, MemoryGiB: 512}
		c.Labels = labels(serverLabels, "server", map[string]string{labelRegion: c.Region, labelZone: c.Zone, labelType: c.InstanceType})
		for t := range taints {
			c.Taints = append(c.Taints, selection.Taint{Key: label(t), Value: "true", Effect: "NoBind"})
		}
		describe(&c)
		kinds[i] = c
	}
	return kinds
}

// describe is what a BMC reports.
func describe(c *selection.Candidate) {
	const tib = 1 << 40
	c.Manufacturer, c.Model, c.SKU, c.BIOSVersion, c.CPUModel, c.CPUCount = "Contoso", "R1", "R1-64", "2.10.0", "Example CPU 64", 2
	c.DiskCount, c.Disks, c.DiskMinBytes, c.DiskMaxBytes = 2, selection.DiskCounts{NVMe: 2}, tib, tib
	c.DiskBytes = selection.DiskBytes{NVMe: 2 * tib, Total: 2 * tib}
	c.NICCount, c.NICMaxSpeed, c.NICTotalSpeed = 2, 25_000, 50_000
}

// now is a moment that does not depend on the time of the question.
const now = 1_767_225_600

func typicalFleet(total int) selection.Fleet {
	f := selection.Fleet{Now: now, Total: int64(total), Claimed: int64(total) / 2}
	share := func(kind string, among, divisor int) map[string]int64 {
		counts := map[string]int64{}
		for i := range among {
			counts[numbered(kind, i)] = int64(total / among / divisor)
		}
		return counts
	}
	f.TotalByRack, f.TotalByZone = share("r", racks, 1), share("z", zones, 1)
	f.ClaimedByRack, f.ClaimedByZone = share("r", racks, 2), share("z", zones, 2)
	f.FreeByRack, f.FreeByZone = f.ClaimedByRack, f.ClaimedByZone
	f.NamespaceByRack, f.NamespaceByZone = share("r", racks, 4), share("z", zones, 4)
	return f
}

func typicalClaim() selection.Claim {
	c := selection.Claim{Namespace: "team", Name: "claim", Image: "registry.example.com/os:1", Power: "On",
		Labels: labels(claimLabels, "claim", nil), Annotations: labels(claimAnnotations, "note", nil),
		Selector: map[string]string{labelType: "compute", label(0): "a"}}
	for t := range taints {
		c.Tolerations = append(c.Tolerations, selection.Toleration{Key: label(t), Operator: "Equal", Value: "true", Effect: "NoBind"})
	}
	return c
}

// plainRequest is for a claim that says as little as it can.
func plainRequest() admission.Input {
	return admission.Input{Operation: "CREATE", Kind: "ServerClaim",
		Object: map[string]any{"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "ServerClaim",
			"metadata": map[string]any{"namespace": "team", "name": "claim"},
			"spec":     map[string]any{"power": "On", "image": "registry.example.com/os:1", "serverSelector": map[string]any{}}},
		User: admission.User{Name: "jane"}}
}

// typicalRequest is for the claim that typicalClaim is to a selection.
func typicalRequest() admission.Input {
	claim, request := typicalClaim(), plainRequest()
	text := func(all map[string]string) map[string]any {
		out := map[string]any{}
		for key, value := range all {
			out[key] = value
		}
		return out
	}
	var tolerations []any
	for _, t := range claim.Tolerations {
		tolerations = append(tolerations, map[string]any{"key": t.Key, "operator": t.Operator, "value": t.Value, "effect": t.Effect})
	}
	request.Object["metadata"] = map[string]any{"namespace": claim.Namespace, "name": claim.Name, "labels": text(claim.Labels),
		"annotations": text(claim.Annotations)}
	request.Object["spec"] = map[string]any{"power": claim.Power, "image": claim.Image, "tolerations": tolerations,
		"serverSelector": map[string]any{"matchLabels": text(claim.Selector), "matchExpressions": []any{
			map[string]any{"key": label(1), "operator": "In", "values": []any{"a", "b"}}}}}
	request.User.Groups = []string{"system:authenticated", "team"}
	request.Facts = map[string]any{"satisfiable": true, "selectorMatches": true}
	return request
}
