// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// MaxReport is how many bytes of JSON are stored of a report.
const MaxReport = 64 << 10

// trimSource is the source of the problem that says what was left out of a report.
const trimSource = "registry"

// maxProblems is how many problems the API stores.
const maxProblems = 64

// trims are what is left out of a report that is too large, in this order. Disks stay: a wipe is held against them.
var trims = []struct {
	what string
	// hides is the kind of parts that cannot be compared afterwards; empty where all can.
	hides string
	drop  func(*policyv1alpha1.ProbeData)
}{
	{"pciDevices", PartPCI, func(d *policyv1alpha1.ProbeData) { d.PCIDevices = nil }},
	{"capabilities of CPUs", "", func(d *policyv1alpha1.ProbeData) {
		for i := range d.CPU {
			d.CPU[i].Capabilities = nil
		}
	}},
	{"link modes and ports of NICs", "", func(d *policyv1alpha1.ProbeData) {
		for i := range d.NICs {
			d.NICs[i].LinkModes, d.NICs[i].SupportedPorts = nil, nil
		}
	}},
	{"lldp", "", func(d *policyv1alpha1.ProbeData) { d.LLDP = nil }},
	{"details of problems", "", func(d *policyv1alpha1.ProbeData) {
		for i := range d.Problems {
			d.Problems[i].Message = cut(d.Problems[i].Message, 64)
		}
	}},
	{"addresses of networkInterfaces", "", func(d *policyv1alpha1.ProbeData) {
		for i := range d.NetworkInterfaces {
			d.NetworkInterfaces[i].IPAddresses = nil
		}
	}},
	{"memory but for size and slot and serial", PartDIMM, func(d *policyv1alpha1.ProbeData) {
		for i, m := range d.Memory {
			d.Memory[i] = policyv1alpha1.MemoryDevice{SizeBytes: m.SizeBytes, DeviceLocator: m.DeviceLocator, SerialNumber: m.SerialNumber}
		}
	}},
	{"memory", PartDIMM, func(d *policyv1alpha1.ProbeData) {
		var total int64
		for _, m := range d.Memory {
			total += m.SizeBytes
		}
		d.Memory = []policyv1alpha1.MemoryDevice{{SizeBytes: total}}
	}},
	{"networkInterfaces", "", func(d *policyv1alpha1.ProbeData) { d.NetworkInterfaces = nil }},
	{"nics", PartNIC, func(d *policyv1alpha1.ProbeData) { d.NICs = nil }},
}

// without is what stands in a problem before what was left out.
const without = " without: "

// trimmed says that a kind of parts was left out, as a problem of Trim says it.
func trimmed(message, kind string) bool {
	_, list, _ := strings.Cut(message, without)
	dropped := strings.Split(list, ", ")
	for _, trim := range trims {
		if trim.hides == kind && slices.Contains(dropped, trim.what) {
			return true
		}
	}
	return false
}

// Trim leaves out of a report what makes it larger than MaxReport, and adds a problem that says so. A machine with very many disks
// may stay larger.
func Trim(data *policyv1alpha1.ProbeData) {
	var dropped []string
	for _, trim := range trims {
		text, err := json.Marshal(data)
		if err != nil || len(text) <= MaxReport {
			break
		}
		if len(dropped) == 0 {
			data.Problems = append(slices.Clone(data.Problems[:min(len(data.Problems), maxProblems-1)]), policyv1alpha1.ProbeProblem{})
		}
		trim.drop(data)
		dropped = append(dropped, trim.what)
		data.Problems[len(data.Problems)-1] = policyv1alpha1.ProbeProblem{Source: trimSource,
			Message: cut(fmt.Sprintf("the report was larger than %d bytes and is stored"+without+"%s", MaxReport, strings.Join(dropped, ", ")), 512)}
	}
}
