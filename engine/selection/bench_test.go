// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// hardware of the benchmarks' fleet; half of the servers are of the first type.
var benchmarkTypes = []Candidate{
	{InstanceType: "c1.medium", Manufacturer: "Dell Inc.", Model: "PowerEdge R650", CPUCount: 2, Cores: 64, MemoryGiB: 256, DiskCount: 2, NICMaxSpeed: 25000},
	{InstanceType: "c1.large", Manufacturer: "Dell Inc.", Model: "PowerEdge R750", CPUCount: 2, Cores: 96, MemoryGiB: 512, DiskCount: 4, NICMaxSpeed: 100000},
	{InstanceType: "m1.large", Manufacturer: "Lenovo", Model: "ThinkSystem SR650 V3", CPUCount: 2, Cores: 128, MemoryGiB: 2048, DiskCount: 4, NICMaxSpeed: 100000},
	{InstanceType: "g1.large", Manufacturer: "Supermicro", Model: "SYS-821GE-TNHR", CPUCount: 2, Cores: 96, MemoryGiB: 1024, DiskCount: 8, NICMaxSpeed: 400000, GPUs: 8},
}

const benchmarkNow = 1767225600

// benchmarkCandidate is one server of a fleet of racks of 40, in three zones, each rack with two types of hardware; one in a
// hundred has a warning and one in five hundred is critical. They became Available at any second of the last three months.
func benchmarkCandidate(i int, r *rand.Rand) Candidate {
	rack := i / 40
	c := benchmarkTypes[(rack+i%2)%4*(i%2)]
	c.Name, c.Zone, c.Region, c.Rack = fmt.Sprintf("server-%05d", i), fmt.Sprintf("eu-1%c", 'a'+rack%3), "eu-1", fmt.Sprintf("r%03d", rack)
	c.SKU, c.NICCount, c.DiskBytes, c.Health = fmt.Sprintf("SKU%03d", i%7), 4, DiskBytes{NVMe: 8e12, Total: 8e12}, "OK"
	switch {
	case i%500 == 7:
		c.Health = "Critical"
	case i%100 == 3:
		c.Health = "Warning"
	}
	c.AvailableSince, c.TimesClaimed = benchmarkNow-r.Int64N(90*86400), int64(i%9)
	c.Labels = map[string]string{
		"topology.kubernetes.io/zone": c.Zone, "topology.kubernetes.io/region": c.Region, "metal.ironcore.dev/instance-type": c.InstanceType,
		"example.com/owner": fmt.Sprintf("team-%d", i%5), "example.com/row": fmt.Sprintf("row-%d", rack/10), "kubernetes.io/hostname": c.Name,
	}
	return c
}

func benchmarkFleet(n int) ([]*PreparedCandidate, Fleet) {
	r := rand.New(rand.NewPCG(1, 2))
	fleet := Fleet{Now: benchmarkNow, TotalByRack: map[string]int64{}, ClaimedByRack: map[string]int64{},
		TotalByZone: map[string]int64{}, ClaimedByZone: map[string]int64{}}
	all := make([]*PreparedCandidate, n)
	for i := range all {
		c := benchmarkCandidate(i, r)
		all[i] = NewCandidate(c)
		fleet.Total += 2
		fleet.TotalByRack[c.Rack] += 2
		fleet.TotalByZone[c.Zone] += 2
		if claimed := int64(i % 2); claimed > 0 {
			fleet.Claimed++
			fleet.ClaimedByRack[c.Rack]++
			fleet.ClaimedByZone[c.Zone]++
		}
	}
	r.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, fleet
}

var benchmarkClaim = Claim{Namespace: "team", Name: "c", Image: "registry.example.com/os:1", Power: "On",
	Labels: map[string]string{"app": "db"}, Selector: map[string]string{"topology.kubernetes.io/region": "eu-1"}}

// One claim, for which the hard contract has let that many servers pass, and the policy of the default bundle. The moment of
// the decision differs each time. The first evaluation, which puts the servers into classes, is BenchmarkFirstSelect.
func BenchmarkSelect(b *testing.B) {
	policy := compiled(b, bundled(b, "selection.rego"))
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("servers=%d", n), func(b *testing.B) { selecting(b, policy, n) })
	}
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("interpreted/servers=%d", n), func(b *testing.B) { selecting(b, policy.Interpreted(), n) })
	}
}

func selecting(b *testing.B, policy *Policy, n int) {
	candidates, fleet := benchmarkFleet(n)
	if _, err := policy.Select(b.Context(), benchmarkClaim, candidates, fleet); err != nil && policy.IsNative() {
		b.Fatal(err)
	}
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		fleet.Now++
		if _, err := policy.Select(b.Context(), benchmarkClaim, candidates, fleet); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpuTime is what the process has used, which other processes on the machine change little.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkFirstSelect(b *testing.B) {
	policy := compiled(b, bundled(b, "selection.rego"))
	candidates, fleet := benchmarkFleet(10000)
	b.ReportAllocs()
	for b.Loop() {
		policy.native.places.Store(newPlaces(policy.native.program.Factors))
		if _, err := policy.Select(b.Context(), benchmarkClaim, candidates, fleet); err != nil {
			b.Fatal(err)
		}
	}
}

// The memory that a fleet takes which the policy has looked at.
func BenchmarkMemory(b *testing.B) {
	policy := compiled(b, bundled(b, "selection.rego"))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := heap()
		candidates, fleet := benchmarkFleet(10000)
		if _, err := policy.Select(b.Context(), benchmarkClaim, candidates, fleet); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap()-before)/10000, "B/server")
		runtime.KeepAlive(candidates)
	}
}

func BenchmarkEligible(b *testing.B) {
	candidates, _ := benchmarkFleet(10000)
	claim := ClaimSpec{Selector: &Selector{MatchLabels: benchmarkClaim.Selector}}
	states := make([]ServerState, len(candidates))
	for i, c := range candidates {
		states[i] = ServerState{Name: c.facts.Name, Labels: c.facts.Labels, State: "Available", Power: "Off"}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range states {
			Eligible(claim, states[i])
		}
	}
}

func BenchmarkNewCandidate(b *testing.B) {
	c := benchmarkCandidate(1, rand.New(rand.NewPCG(1, 2)))
	b.ReportAllocs()
	for b.Loop() {
		NewCandidate(c)
	}
}

func BenchmarkCompile(b *testing.B) {
	files := bundled(b, "selection.rego")
	b.ReportAllocs()
	for b.Loop() {
		Compile(files)
	}
}
