// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// point is a figure of a benchmark at one size of the fleet.
type point struct{ servers, value float64 }

var serversOf = regexp.MustCompile(`/servers=(\d+)`)

// points reads the output of `go test -bench`: the figure in a unit of those benchmarks whose name matches, by servers=N in the name.
// Of several runs it takes the median. Each unit stands behind its figure, as in "5348 B/op".
func points(output, name, unit string) ([]point, error) {
	matches, err := regexp.Compile("^Benchmark(?:" + name + `)(-\d+)?$`)
	if err != nil {
		return nil, err
	}
	runs := map[float64][]float64{}
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !matches.MatchString(fields[0]) {
			continue
		}
		size := serversOf.FindStringSubmatch(fields[0])
		at := slices.Index(fields, unit)
		if size == nil || at < 1 {
			continue
		}
		servers, err := strconv.ParseFloat(size[1], 64)
		if err != nil {
			return nil, err
		}
		value, err := strconv.ParseFloat(fields[at-1], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no number of %s", fields[0], fields[at-1], unit)
		}
		runs[servers] = append(runs[servers], value)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no benchmark %s tells %s: measure anew with `make figures`", name, unit)
	}
	var all []point
	for _, servers := range slices.Sorted(maps.Keys(runs)) {
		values := runs[servers]
		slices.Sort(values)
		all = append(all, point{servers, values[len(values)/2]})
	}
	return all, nil
}
