// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"pgregory.net/rapid"
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
	var deck []int
	for i, n := range draws {
		dice := rand.New(rand.NewPCG(n, uint64(i)))
		if dice.IntN(sceneOdds) == 0 {
			if len(deck) == 0 {
				deck = dice.Perm(scenes)
			}
			p = append(p, drawScene(dice, deck[0], kinds)...)
			deck = deck[1:]
		} else {
			p = append(p, drawStep(dice, kinds[dice.IntN(len(kinds))]))
		}
		if len(p) >= length {
			return p[:length]
		}
	}
	return p
}

func drawStep(dice *rand.Rand, action string) step {
	return step{action: action, machine: dice.IntN(machines), claim: dice.IntN(claims),
		choice: dice.IntN(1 << 16), pause: time.Duration(dice.IntN(longestPause)) * time.Millisecond}
}

// pick takes one of several by the step's choice, and shift how often it was asked before.
func pick[T any](s step, shift uint, from ...T) T { return from[(s.choice>>shift)%len(from)] }
