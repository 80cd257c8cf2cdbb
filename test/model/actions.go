// SPDX-License-Identifier: Apache-2.0

// Package model does at random what users, hands, hardware, networks and crashes do to a fleet, and judges by an oracle of its
// own whether the safety rules held, at every moment, and whether everything comes to rest afterwards.
package model

import (
	"context"
	"maps"
	"slices"
)

// action is one kind of thing that is done to the world.
type action struct {
	// weight is how often it is chosen, compared with the others.
	weight int
	// words say what a step of this kind does.
	words func(step) string
	// do does it, and returns what kept it from being done: a refusal is as good as any other outcome.
	do func(context.Context, *run, step) error
}

// actions is everything that users, hands, hardware and fate do.
var actions = merged(claimActions(), serverActions(), fleetActions(), maintenanceActions(), machineActions(), exchangeActions(), fateActions())

// actionNames are sorted, so that a seed means the same in every process.
var actionNames = slices.Sorted(maps.Keys(actions))

func merged(all ...map[string]action) map[string]action {
	one := map[string]action{}
	for _, some := range all {
		maps.Copy(one, some)
	}
	return one
}

func fixed(text string) func(step) string { return func(step) string { return text } }

func onMachine(text string) func(step) string {
	return func(s step) string { return "machine " + s.machineName() + ": " + text }
}

func onClaim(text string) func(step) string {
	return func(s step) string { return "claim " + s.claimName() + ": " + text }
}
