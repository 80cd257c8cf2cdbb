// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/redfish/emulator"
)

const (
	// machines and claims are how many of each a run has.
	machines, claims = 4, 5
	// longestPause is the longest time between two steps; some steps wait by themselves.
	longestPause = 250
)

// step is one thing that is done to the world. What it is about was chosen without looking, so that the same plan can be
// carried out again: a step that finds nothing to do does nothing.
type step struct {
	action string
	// machine and claim are numbers; which of them counts, if any, is the action's business.
	machine, claim int
	// holder prefers the claim that has the machine of the step.
	holder bool
	// choice is for the action to use, as often as it has to choose.
	choice int
	pause  time.Duration
}

// plan is the steps of one run.
type plan []step

// String tells the plan in words.
func (p plan) String() string {
	var all strings.Builder
	for i, s := range p {
		fmt.Fprintf(&all, "%3d. %s\n", i+1, s)
	}
	return all.String()
}

// String tells the step in words.
func (s step) String() string {
	return fmt.Sprintf("%s (then %s)", actions[s.action].words(s), s.pause)
}

func (s step) machineName() string { return string(rune('1' + s.machine)) }

func (s step) claimName() string { return string(rune('a' + s.claim)) }

// drawPlan draws a plan. Its steps do not depend on how the world reacts, so a seed is a plan.
func drawPlan(t *rapid.T, length int) plan {
	var kinds []string
	for _, name := range actionNames {
		for range actions[name].weight {
			kinds = append(kinds, name)
		}
	}
	// rapid prefers small numbers, which would be the same few actions again and again: what it draws is mixed.
	draws := rapid.SliceOfN(rapid.Uint64(), length, length).Draw(t, "plan")
	var p plan
	for i, n := range draws {
		dice := rand.New(rand.NewPCG(n, uint64(i)))
		if dice.IntN(tenancyOdds) == 0 {
			p = append(p, drawTenancy(dice, kinds)...)
		} else {
			p = append(p, drawStep(dice, kinds[dice.IntN(len(kinds))]))
		}
		if len(p) >= length {
			return p[:length]
		}
	}
	return p
}

// tenancyOdds is how seldom a whole tenancy is drawn in place of one step. Most rules are about what one tenant leaves to
// the next, and of steps drawn one by one hardly any gets that far.
const tenancyOdds = 5

// drawTenancy draws a tenancy of one kind, with steps of any kind in between.
func drawTenancy(dice *rand.Rand, kinds []string) []step {
	one := drawStep(dice, "claim")
	as := func(action string, choice int) step {
		s := one
		s.action, s.choice, s.holder = action, choice, action != "claim"
		return s
	}
	by := func(action string) step { return as(action, dice.IntN(1<<16)) }
	anything := func() step { return drawStep(dice, kinds[dice.IntN(len(kinds))]) }
	long := as("wait", longestWait)
	switch dice.IntN(12) {
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
		return []step{as("claim", byName), by("await claim"), by("ask maintenance"), by("approve maintenance"), long, by("grant maintenance"), long, long,
			anything(), by("unclaim"), long, long, by("end maintenance"), by("settle")}
	case 6: // a free machine is handed to a maintenance, and asked for
		return []step{by("grant maintenance"), long, long, as("claim", byName), long, by("end maintenance"), by("await claim"), by("unclaim")}
	case 7: // another machine is in its place, and is accepted or not
		middle := []step{by("accept"), long, by("settle"), anything()}
		if dice.IntN(2) == 0 {
			middle = []step{anything(), long}
		}
		return slices.Concat([]step{by("claim"), by("await claim"), by("exchange"), long, long}, middle, []step{by("swap back"), by("settle"), by("unclaim")})
	case 8: // its BMC keeps the override that served
		return []step{as("claim", byName), by("await claim"), by("override kept"), long, anything()}
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

func drawStep(dice *rand.Rand, action string) step {
	return step{action: action, machine: dice.IntN(machines), claim: dice.IntN(claims),
		choice: dice.IntN(1 << 16), pause: time.Duration(dice.IntN(longestPause)) * time.Millisecond}
}

// pick takes one of several by the step's choice, and shift how often it was asked before.
func pick[T any](s step, shift uint, from ...T) T { return from[(s.choice>>shift)%len(from)] }
