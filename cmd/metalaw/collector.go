// SPDX-License-Identifier: Apache-2.0

package main

import "runtime/debug"

const (
	// gcPercent is the default of --gc-percent: docs/load.md has what other values take.
	gcPercent = 50
	// leastGCPercent is where the collector would take more time than the manager.
	leastGCPercent = 10
	// collectorVariable is how Go is told the same for any program.
	collectorVariable = "GOGC"
)

// setCollector sets how much of the heap may be garbage. A variable of the environment stands: Go has read it already.
func (o *options) setCollector(variable string) {
	if variable == "" {
		debug.SetGCPercent(o.gcPercent)
	}
}
