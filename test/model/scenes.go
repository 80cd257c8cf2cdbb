// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// Most rules are about what one tenant leaves to the next, or about what happens while something else is held back, and of
// steps drawn one by one hardly any gets that far. So whole scenes are drawn in place of some steps. They are dealt from a
// shuffled deck, so that a plan of some length plays them all.
const (
	// sceneOdds is how seldom a scene is drawn in place of one step, and scenes how many there are.
	sceneOdds, scenes = 4, 13
)

// drawScene draws a scene on a cleared stage, with steps of any kind in between.
func drawScene(dice *rand.Rand, scene int, kinds []string) []step {
	one := drawStep(dice, "claim")
	one.machine = dice.IntN(stranger) // which nobody has to consent to first
	as := func(action string, choice int) step {
		s := one
		s.action, s.choice, s.holder = action, choice, action != "claim"
		return s
	}
	cast := cast{one: one, as: as, by: func(action string) step { return as(action, dice.IntN(1<<16)) },
		anything: func() step { return drawStep(dice, kinds[dice.IntN(len(kinds))]) }}
	return append([]step{cast.by("clear")}, cast.scene(scene, dice)...)
}

// cast is what a scene is made of: steps about one machine and one claim, and others.
type cast struct {
	one      step
	as       func(action string, choice int) step
	by       func(action string) step
	anything func() step
}

func (c cast) scene(number int, dice *rand.Rand) []step {
	one, as, by, anything := c.one, c.as, c.by, c.anything
	long := as("wait", longestWait)
	switch number {
	case 0: // its machine is left alone when the tenancy ends
		return []step{as("claim", byName), by("await claim"), as("ignore", 0), long, long, by("unclaim"), long, long, as("ignore", 1), by("settle")}
	case 1: // its machine is deaf for a while
		return []step{as("fault", deaf()), as("claim", byName), by("await claim"), anything(), by("heal"), by("unclaim"), by("settle")}
	case 2: // its claim vanishes
		return []step{as("claim", byName), by("await claim"), by("vanish"), anything(), by("settle")}
	case 3: // two at once, where only one machine may be switched on at a time
		other := drawStep(dice, "claim")
		other.choice, other.claim = anyMachine, (one.claim+1)%claims
		return []step{as("budget", oneOn), long, long, long, as("claim", anyMachine), other, long, by("settle"), by("no budget"),
			by("await claim"), by("unclaim"), by("unclaim")}
	case 4: // a wipe trips the breaker, and another tenancy ends before somebody looks
		other := drawStep(dice, "unclaim")
		return []step{as("breaker", 0), as("claim", anyMachine), by("await claim"), by("unclaim"), long, long, other, long, long,
			by("acknowledge"), by("settle")}
	case 5: // its machine is handed to a maintenance, and its claim goes meanwhile
		return []step{as("claim", byName), by("await claim"), by("ask maintenance"), long, by("approve maintenance"), long, long,
			by("power maintenance"), long, anything(), by("unclaim"), long, long, by("end maintenance"), by("settle")}
	case 6: // a free machine is handed to a maintenance, and asked for
		return []step{by("grant maintenance"), long, long, as("claim", byName), long, by("end maintenance"), by("await claim"), by("unclaim")}
	case 8: // two maintenances of a machine that is claimed, and the claim goes on
		return []step{as("claim", byName), by("await claim"), as("ask maintenance", 8), as("ask maintenance", 1<<9|8), long,
			by("approve maintenance"), long, anything(), long, by("end maintenance"), long, by("settle"), by("unclaim")}
	case 9: // its machine goes out of service, and comes back
		return []step{as("claim", byName), by("await claim"), by(v1alpha1.OperationDecommission), long, anything(), by("unclaim"), long, long, long,
			anything(), by(v1alpha1.OperationRecommission), by("settle")}
	case 10: // a free machine boots the tools of a maintenance, and is asked for meanwhile
		return []step{as("ask maintenance", 8), long, long, anything(), as("claim", byName), long, by("end maintenance"), long, by("await claim"),
			by("unclaim"), by("settle")}
	case 7: // another machine is in its place, and is accepted or not
		middle := []step{by("accept"), long, long, by("claim"), long, anything()}
		if dice.IntN(2) == 0 {
			middle = []step{anything(), long}
		}
		return slices.Concat([]step{as("claim", byName), by("await claim"), by("exchange"), long, long}, middle,
			[]step{by("swap back"), by("settle"), by("unclaim")})
	}
	return []step{one, by("await claim"), anything(), by("unclaim"), anything(), by("settle")}
}

// Choices that have a step do one thing of those that it may do.
const (
	// byName has a claim ask for power on the machine of its step, anyMachine on any.
	byName, anyMachine = 2, 0
	// oneOn is a budget of one machine that is switched on.
	oneOn = 1
	// longestWait is of two seconds.
	longestWait = 19
)

// deaf is the choice of a BMC that says it does what it is asked, and does not.
func deaf() int {
	return slices.IndexFunc(troubles, func(f emulator.Fault) bool { return f.Name == "ResetsIgnored" })
}
