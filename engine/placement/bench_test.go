// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"testing"

	"github.com/metalaw/metalaw/engine/selection"
)

func benchmarkCandidates(n int) []*selection.Candidate {
	var all []*selection.Candidate
	for i := range n {
		all = append(all, &selection.Candidate{
			Name: fmt.Sprintf("server-%05d", i), Labels: map[string]string{"zone": "z1", "type": "m1", "rack": fmt.Sprintf("r%02d", i%20)},
			Manufacturer: "Dell Inc.", Model: "PowerEdge R750", SKU: "7X9K2L3", CPUCount: 2, Cores: 64, MemoryGiB: 512 << (i % 3), DiskCount: 4,
			DiskBytes: selection.DiskBytes{NVMe: 8e12, Total: 8e12}, NICCount: 4, NICMaxSpeed: 100000, GPUs: int64(i % 2), Health: "OK", Zone: "z1", Region: "eu",
			Rack: fmt.Sprintf("r%02d", i%20), InstanceType: "m1", AvailableSince: 1767225600 - int64(i)*3600,
		})
	}
	return all
}

func BenchmarkSort(b *testing.B) {
	all := benchmarkCandidates(10000)
	counts := map[string]int64{}
	for i := range 20 {
		counts[fmt.Sprintf("r%02d", i)] = int64(i % 2)
	}
	for name, text := range map[string]string{
		"where":       `where: server.memoryGiB >= 1024 && server.rack != "r01"`,
		"label":       `where: label("rack") == "r02" || server.labels["type"] == "m2"`,
		"errors":      `where: server.labels["rock"] == "r02"`,
		"interpreted": `where: -server.cores < 0 && server.memoryGiB >= 1024`,
		"everything": `
where: server.memoryGiB >= 1024 && server.rack != "r01"
alternatives: [{selector: {matchLabels: {type: m2}}}, {where: server.gpus > 0}, {}]
preferred: [{weight: 10, where: 'server.rack in ["r02", "r03"]'}, {weight: -5, where: server.model.startsWith("Power")}]
spread: {key: rack}
gang: {name: db, size: 3}`,
	} {
		b.Run(name, func(b *testing.B) {
			p := compiled(b, text)
			b.ReportAllocs()
			for b.Loop() {
				p.Sort(len(all), func(i int) *selection.Candidate { return all[i] }, counts)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		compiled(b, `where: server.memoryGiB >= 1024 && server.rack != "r01"`)
	}
}
