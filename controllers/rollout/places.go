// SPDX-License-Identifier: Apache-2.0

package rollout

// Places is how many more servers may come under a canary. Whoever is under it and has not shown yet how it fares may be in trouble at
// the next look: so these and the servers in trouble are never more than the budget and one, at which the canary is paused.
func Places(budget, cost Troubles, unshown int32) int32 {
	return min(budget.Halts-cost.Halts, budget.Errors-cost.Errors) + 1 - unshown
}
