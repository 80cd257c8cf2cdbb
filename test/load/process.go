// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// clockTicks is the kernel's unit of CPU time for programs, the same on every Linux.
const clockTicks = 100

// processCost is what the kernel says that a process has cost until now.
type processCost struct {
	CPUSeconds float64
	// PeakRSS is in bytes.
	PeakRSS int64
}

// readCost asks the kernel about a running process.
func readCost(pid int) (processCost, error) {
	folder := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return processCost{}, fmt.Errorf("costs of a process are read from /proc, as Linux has it: %w", err)
	}
	status, err := os.ReadFile(folder + "/status")
	if err != nil {
		return processCost{}, err
	}
	var cost processCost
	if cost.CPUSeconds, err = parseStat(string(stat)); err != nil {
		return processCost{}, fmt.Errorf("%s/stat: %w", folder, err)
	}
	if cost.PeakRSS, err = parseStatus(string(status)); err != nil {
		return processCost{}, fmt.Errorf("%s/status: %w", folder, err)
	}
	return cost, nil
}

// parseStat finds user and system time. The program's name, in parentheses, may hold anything.
func parseStat(text string) (seconds float64, err error) {
	const user, system = 11, 12 // counted from the state, which follows the name
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return 0, fmt.Errorf("%q names no program", text)
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) <= system {
		return 0, fmt.Errorf("%q has too few fields", text)
	}
	for _, i := range []int{user, system} {
		ticks, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		seconds += float64(ticks) / clockTicks
	}
	return seconds, nil
}

// parseStatus finds the largest resident set that the process had.
func parseStatus(text string) (bytes int64, err error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		value, found := strings.CutPrefix(lines.Text(), "VmHWM:")
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		return kib << 10, err
	}
	return 0, fmt.Errorf("no line VmHWM")
}

// readHost is the CPU time that everything on this host has used until now.
func readHost() (seconds float64, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseHost(string(text))
}

// parseHost adds up what was not idle, nor waiting for a disk, in the line of all cores.
func parseHost(text string) (seconds float64, err error) {
	const idle, wait, last = 4, 5, 7
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) <= last || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %.80q", line)
	}
	busy := uint64(0)
	for i := 1; i <= last; i++ {
		ticks, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		if i != idle && i != wait {
			busy += ticks
		}
	}
	return float64(busy) / clockTicks, nil
}
