// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cpus groups the logical processors of /proc/cpuinfo by package.
// Where the kernel names no packages (ARM) they count as one.
func (h *Host) cpus(data *Data) error {
	text := h.sys().Word("proc/cpuinfo")
	if text == "" {
		return nil
	}
	byPackage := map[int32]*CPU{}
	for block := range strings.SplitSeq(text, "\n\n") {
		fields := cpuFields(block)
		if _, isProcessor := fields["processor"]; !isProcessor {
			continue
		}
		id := int32(0)
		if word, named := fields["physical id"]; named {
			parsed, err := strconv.ParseUint(word, 10, 31)
			if err != nil {
				return fmt.Errorf("/proc/cpuinfo: physical id %.32q is no number", word)
			}
			id = int32(parsed)
		}
		cpu := byPackage[id]
		if cpu == nil {
			cpu = newCPU(id, fields)
			byPackage[id] = cpu
		}
		cpu.TotalHardwareThreads++
	}
	for _, cpu := range byPackage {
		if cpu.TotalCores == 0 {
			cpu.TotalCores = cpu.TotalHardwareThreads
		}
		data.CPU = append(data.CPU, *cpu)
	}
	slices.SortFunc(data.CPU, func(a, b CPU) int { return int(a.ID - b.ID) })
	return nil
}

func newCPU(id int32, fields map[string]string) *CPU {
	cpu := &CPU{
		ID:           id,
		Vendor:       cmp.Or(fields["vendor_id"], fields["CPU implementer"]),
		Model:        cmp.Or(fields["model name"], fields["CPU part"]),
		Capabilities: strings.Fields(cmp.Or(fields["flags"], fields["Features"])),
	}
	if cores, err := strconv.ParseUint(fields["cpu cores"], 10, 31); err == nil {
		cpu.TotalCores = int32(cores)
	}
	return cpu
}

func cpuFields(block string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(block) {
		if key, value, found := strings.Cut(line, ":"); found {
			fields[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return fields
}
