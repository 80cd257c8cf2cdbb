// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle/scenario"
)

// said renders a report: each finding in a line, and beneath it its counterexample and what is decided there.
func said(r Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		f.Hint = ""
		b.WriteString(f.String() + "\n")
		if x := f.Counterexample; x != nil {
			b.WriteString("  " + x.String() + "\n  {" + scenario.Expected(x.Decision) + "}")
			if !x.Confirmed {
				b.WriteString(" (not confirmed)")
			}
			b.WriteString("\n")
		}
	}
	for _, u := range r.Undecided {
		b.WriteString("undecided: " + u + "\n")
	}
	return b.String()
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		rewrite []string
		want    string
	}{
		"nothing is said of a lifecycle in order": {nil, ""},
		"an effect that a safety rule can forbid": {
			[]string{`{do: PowerOn, when: "!claimed"}`, `PowerOn`, "  claimed: claim.bound\n", ""}, `
lifecycle.yaml:16:7: error: Inspect: in Inspect, PowerOn can be wanted where NeverClaimed forbids it: a claimed server is not ours to switch [safety-effect]
  in Inspect with {claim.bound: true}
  {halts: SafetyRule, rule: PowerOn}
`},
		"an effect whose rule does not hold and is not open": {
			[]string{`{do: PowerOff, when: running}`, `PowerOff`}, `
lifecycle.yaml:5:3: warning: running: no guard uses the definition running [definition-unused]
lifecycle.yaml:31:7: error: Ready: in Ready, PowerOff can be wanted where Settled forbids it: only what is on is powered off [safety-effect]
  Inspect -Passed-> Ready; in Ready with {}
  {halts: SafetyRule, rule: PowerOff}
lifecycle.yaml:32:12: warning: Ready: Ready never wants BootImage: where stopped holds the state is left [effect-never-ensured]
`},
		"an effect that would set a mark where that is forbidden": {
			[]string{`{do: BootImage, when: stopped}`, `BootImage`, "  stopped: bmc.power == \"Off\"\n", ""}, `
lifecycle.yaml:31:7: error: Ready: in Ready, BootImage can be wanted and would set Managed where ManagedWhileOff forbids it: a server is taken over only while off [safety-effect]
  Inspect -Passed-> Ready; in Ready with {bmc.power: "Unknown"}
  {halts: SafetyRule, rule: BootImage}
`},
		"a state in which an effect that is not wanted forbids to stay": {
			[]string{`- {do: BootImage, when: stopped}`, "- {do: BootImage, when: stopped}\n    - {do: BootWipe, when: stopped && !claimed}\n    - {do: BootWipe, when: claimed && stopped}"}, `
lifecycle.yaml:33:12: error: Ready: in Ready, which has BootWipe, a server can stay where WipeStaysUnclaimed forbids it: a claimed server is not wiped [safety-stay]
  Inspect -Passed-> Ready; in Ready with {bmc.power: "Unknown", claim.bound: true}
  {halts: SafetyRule, rule: BootWipe}
`},
		"an exit that leads away from where an effect forbids to stay": {
			[]string{`- {do: BootImage, when: stopped}`, "- {do: BootImage, when: stopped}\n    - {do: BootWipe, when: stopped}", `{rule: Soiled, to: Inspect, when: dirty}`,
				`{rule: Soiled, to: Inspect, when: dirty || claimed && !stopped}`}, `
lifecycle.yaml:36:14: info: Released: in Ready, Soiled (to Inspect) and Released (to Retired) can hold at once, and the first is taken [order-decides]
  Inspect -Passed-> Ready; in Ready with {bmc.power: "Unknown", claim.bound: true, operation.name: "release"}
  {to: Inspect, rule: Soiled}
`},
		"a move that enters where a safety rule forbids it": {
			[]string{`passed && !dirty`, `passed`}, `
lifecycle.yaml:19:14: error: Passed: in Inspect, Passed can enter Ready where NeverOfferDirty forbids it: a dirty server is never offered [safety-move]
  in Inspect with {lifecycle.marks: ["Dirty"], probe.entry: 1, probe.good: true}
  {halts: SafetyRule, rule: Passed}
`},
		"a move that clears the mark may enter, and clears where a safety rule forbids it": {
			[]string{`when: passed && !dirty}`, `when: passed, clears: [Dirty]}`}, `
lifecycle.yaml:19:14: error: Passed: in Inspect, Passed can clear Dirty where CleanedWhileOff forbids it: a server is cleaned only while off [safety-move]
  in Inspect with {bmc.power: "Unknown", probe.entry: 1, probe.good: true}
  {halts: SafetyRule, rule: Passed}
`},
		"an invariant that can be violated": {
			[]string{"  Retired:\n", "  Retired:\n", "    - {rule: Repaired, to: Inspect, when: repairAsked}\n",
				"    - {rule: Repaired, to: Inspect, when: repairAsked}\ninvariants:\n- {rule: NeverOnWhileFree, must: \"state != 'Ready' || !running\"}\n- {rule: NeverSwitchClaimed, must: \"!claimed || !acting()\"}\n"}, `
lifecycle.yaml:43:10: error: NeverOnWhileFree: in Ready, the invariant NeverOnWhileFree can be violated: state != 'Ready' || !running [invariant-violated]
  Inspect -Passed-> Ready; in Ready with {bmc.power: "On"}
  {halts: InvariantViolated, rule: NeverOnWhileFree}
`},
		"a state that no rule leads to, and one that is only adopted": {
			[]string{"  Retired:\n", "  Legacy:\n    means: Old.\n    stable: true\n    exits:\n    - {rule: Found, to: Inspect, when: running}\n" +
				"  Lost:\n    means: Older.\n    stable: true\n    exits:\n    - {rule: Dug, to: Inspect, when: stopped}\n  Retired:\n"}, `
lifecycle.yaml:36:3: warning: Legacy: no rule that can fire leads to Legacy: only a server that was left by another operator is in it [state-unreachable]
lifecycle.yaml:41:3: error: Lost: no rule that can fire leads to Lost [state-unreachable]
`},
		"a state that nothing leads out of": {
			[]string{"    exits:\n    - {rule: Repaired, to: Inspect, when: repairAsked}\n", "", "  repairAsked: operation.name == \"repair\"\n", ""}, `
lifecycle.yaml:35:3: error: Retired: nothing leads out of Retired: a server that comes there stays until it is forced out [state-dead-end]
lifecycle.yaml:38:18: warning: Retired: the state accepts the operation repair, and nothing is done about it there [operation-idle]
`},
		"a state that nothing that can fire leads out of": {
			[]string{`when: repairAsked}`, `when: repairAsked && releaseAsked}`}, `
lifecycle.yaml:36:3: error: Retired: nothing leads out of Retired: a server that comes there stays until it is forced out [state-dead-end]
lifecycle.yaml:41:14: error: Repaired: Repaired never fires: no facts make repairAsked && releaseAsked true [rule-never-fires]
`},
		"states that lead round and never to rest": {
			[]string{"to: Ready, when: passed", "to: Pause, when: passed", "to: Retired, when: spent &&", "to: Pause, when: spent &&"}, `
lifecycle.yaml:14:3: error: Inspect: no way from Inspect leads to a stable state: a server that comes there never rests [state-dead-end]
lifecycle.yaml:22:3: error: Pause: no way from Pause leads to a stable state: a server that comes there never rests [state-dead-end]
lifecycle.yaml:26:3: error: Ready: no rule that can fire leads to Ready [state-unreachable]
lifecycle.yaml:36:3: error: Retired: no rule that can fire leads to Retired [state-unreachable]
`},
		"an exit that leads to its own state": {
			[]string{"when: releaseAsked && !dirty}", "when: releaseAsked && !dirty}\n    - {rule: Keep, to: Ready, when: running}"}, `
lifecycle.yaml:31:12: warning: Ready: Ready never wants PowerOff: where running holds the state is left [effect-never-ensured]
lifecycle.yaml:36:14: error: Keep: in Ready, Keep leads to Ready itself: where it is taken nothing moves, and nothing is ensured either [exit-to-itself]
  Inspect -Passed-> Ready; in Ready with {bmc.power: "On"}
  {stays: true, ensures: []}
lifecycle.yaml:36:14: info: Keep: in Ready, Released (to Retired) and Keep (to Ready) can hold at once, and the first is taken [order-decides]
  Inspect -Passed-> Ready; in Ready with {bmc.power: "On", operation.name: "release"}
  {to: Retired, rule: Released}
lifecycle.yaml:36:14: info: Keep: in Ready, Soiled (to Inspect) and Keep (to Ready) can hold at once, and the first is taken [order-decides]
  Inspect -Passed-> Ready; in Ready with {lifecycle.marks: ["Dirty"], bmc.power: "On"}
  {to: Inspect, rule: Soiled}
`},
		"a rule that is always taken by another": {
			[]string{"when: releaseAsked && !dirty}", "when: releaseAsked && !dirty}\n    - {rule: Claimed, to: Inspect, when: releaseAsked && running}"}, `
lifecycle.yaml:36:14: error: Claimed: Claimed never fires: where its guard is true, a rule before it is taken (Soiled, Released) [rule-never-fires]
`},
		"thresholds are ordered": {
			[]string{`spent: lifecycle.retries >= 2`, "spent: lifecycle.retries >= 2 && lifecycle.retries < 2"}, `
lifecycle.yaml:20:14: error: Failed: Failed never fires: no facts make spent && !passed true [rule-never-fires]
`},
		"a guard that is always true": {
			[]string{`when: dirty}`, `when: dirty || running || !running}`}, `
lifecycle.yaml:34:41: warning: Soiled: in Ready, the guard of Soiled is always true where it is asked: Released can never fire [guard-always-true]
lifecycle.yaml:35:14: error: Released: Released never fires: where its guard is true, a rule before it is taken (Soiled) [rule-never-fires]
`},
		"a deadline that comes too late": {
			[]string{`after: 5m}`, "after: 5m}\n    - {rule: Frozen, to: Retired, when: stopped, after: 6m}"}, `
lifecycle.yaml:26:57: warning: Frozen: in Pause, the deadline of Frozen is never reached: Cooled leaves the state sooner [deadline-too-late]
`},
		"a deadline that comes too late for what it alone would end": {
			[]string{`after: wipe.budget, retry: true}`, `after: 5m, retry: true}`}, `
lifecycle.yaml:20:66: error: Failed: in Inspect, the deadline of Failed is never reached, because Again leaves the state sooner, and without it servers go round by their deadlines for ever: Inspect -Again-> Pause -Cooled-> Inspect [deadline-too-late]
  in Inspect with {lifecycle.age: 5m, lifecycle.retries: 2}
  {to: Pause, rule: Again}
`},
		"the same where a guard ends it sooner": {
			[]string{`after: wipe.budget, retry: true}`, "after: 5m, retry: true}\n    - {rule: Tired, to: Retired, when: spent}"}, `
lifecycle.yaml:20:66: warning: Failed: in Inspect, the deadline of Failed is never reached: Again leaves the state sooner [deadline-too-late]
lifecycle.yaml:22:14: info: Tired: in Inspect, Again (to Pause) and Tired (to Retired) can hold at once, and the first is taken [order-decides]
  in Inspect with {lifecycle.age: 5m, lifecycle.retries: 2}
  {to: Pause, rule: Again}
lifecycle.yaml:22:14: info: Tired: in Inspect, Passed (to Ready) and Tired (to Retired) can hold at once, and the first is taken [order-decides]
  in Inspect with {lifecycle.retries: 2, probe.entry: 1, probe.good: true}
  {to: Ready, rule: Passed}
`},
		"the same where a stable state is on the way": {
			[]string{`after: wipe.budget, retry: true}`, `after: 5m}`, "    means: Cooling down.\n", "    means: Cooling down.\n    stable: true\n",
				`when: spent && !passed, after: 10m`, `when: "!passed", after: 10m`, "  spent: lifecycle.retries >= 2\n", ""}, `
lifecycle.yaml:19:59: warning: Failed: in Inspect, the deadline of Failed is never reached: Again leaves the state sooner [deadline-too-late]
`},
		"a deadline too late that leads back into the same round": {
			[]string{`to: Retired, when: spent && !passed, after: 10m`, `to: Pause, when: "!passed", after: 10m`,
				`after: wipe.budget, retry: true}`, `after: 5m}`, "  spent: lifecycle.retries >= 2\n", ""}, `
lifecycle.yaml:19:57: warning: Failed: in Inspect, the deadline of Failed is never reached: Again leaves the state sooner [deadline-too-late]
`},
		"a retry that nobody counts": {
			[]string{`after: wipe.budget, retry: true}`, `after: wipe.budget}`}, `
lifecycle.yaml:20:41: error: Failed: in Inspect, Failed asks for lifecycle.retries, which is always 0: no rule that can fire counts a retry [retries-never-grow]
`},
		"a retry that a stable state forgets before anybody asks": {
			[]string{`after: wipe.budget, retry: true}`, `after: wipe.budget}`, `{do: BootImage, when: stopped}`, `{do: BootImage, when: "stopped && !spent"}`,
				`when: repairAsked}`, `when: repairAsked, retry: true}`, `when: spent && !passed`, `when: "!passed"`}, `
lifecycle.yaml:32:29: error: BootImage: in Ready, BootImage asks for lifecycle.retries, which is always 0 there: no retry that is counted leads to it [retries-never-grow]
`},
		"an operation that leads elsewhere than it has to": {
			[]string{`to: Inspect, when: repairAsked`, `to: Ready, when: repairAsked && !dirty`}, `
lifecycle.yaml:41:14: error: Repaired: in Retired, Repaired serves the operation repair and leads to Ready; that operation is for the state Inspect, which is known by its name [operation-destination]
  Inspect -Failed-> Retired; in Retired with {operation.name: "repair"}
  {to: Ready, rule: Repaired}
`},
		"an operation that leads nowhere": {
			[]string{`to: Inspect, when: repairAsked`, `to: Retired, when: repairAsked`}, `
lifecycle.yaml:36:3: error: Retired: nothing leads out of Retired: a server that comes there stays until it is forced out [state-dead-end]
lifecycle.yaml:41:14: error: Repaired: in Retired, Repaired leads to Retired itself: where it is taken nothing moves, and nothing is ensured either [exit-to-itself]
  Inspect -Failed-> Retired; in Retired with {operation.name: "repair"}
  {stays: true, ensures: []}
lifecycle.yaml:41:14: error: Repaired: in Retired, Repaired serves the operation repair and leads to Retired; that operation is for the state Inspect, which is known by its name [operation-destination]
  Inspect -Failed-> Retired; in Retired with {operation.name: "repair"}
  {stays: true, ensures: []}
`},
		"a rule that leads elsewhere whether or not the operation is asked for": {
			[]string{"    - {rule: Repaired, to: Inspect, when: repairAsked}\n", "    - {rule: Repaired, to: Inspect, when: repairAsked && !claimed}\n    - {rule: Back, to: Ready, when: claimed && !dirty}\n"}, `
`},
		"a mark that is given up": {
			[]string{`when: repairAsked}`, `when: repairAsked, clears: [Managed]}`}, `
lifecycle.yaml:41:14: warning: Repaired: Repaired clears Managed: its history is lost [mark-given-up]
`},
		"a division that can be an error": {
			[]string{`spent: lifecycle.retries >= 2`, "spent: hardware.cores / hardware.disks > 2"}, `
lifecycle.yaml:20:14: warning: Failed: in Inspect, the guard of Failed can be an error, and the server would be halted [guard-error]
  in Inspect with {lifecycle.age: 10m, hardware.disks: 0}
  {halts: GuardError, rule: Failed}
undecided: hardware.cores / hardware.disks > 2 is not taken apart: it may be true or false whatever else holds
`},
		"text that is not taken apart": {
			[]string{`when: running}`, `when: running && ours}`, `  claimed: claim.bound`, "  ours: hardware.model.startsWith(\"R7\")\n  claimed: claim.bound",
				`when: repairAsked}`, "when: repairAsked && ours && !exactly}", `  stopped:`, "  exactly: hardware.model == \"R750\"\n  stopped:"}, `
undecided: hardware.model.startsWith("R7") is not taken apart: it may be true or false whatever else holds
`},
		"moves that follow each other without end": {
			[]string{`passed && !dirty`, `stopped && !dirty`, `when: dirty}`, `when: stopped || dirty}`}, `
lifecycle.yaml:19:14: error: Passed: while nothing outside changes, moves follow each other without end: Inspect -Passed-> Ready -Soiled-> Inspect [livelock]
  in Inspect with {}
  {to: Ready, rule: Passed}
lifecycle.yaml:20:14: info: Failed: in Inspect, Passed (to Ready) and Failed (to Retired) can hold at once, and the first is taken [order-decides]
  in Inspect with {lifecycle.age: 10m, lifecycle.retries: 2}
  {to: Ready, rule: Passed}
lifecycle.yaml:32:12: warning: Ready: Ready never wants BootImage: where stopped holds the state is left [effect-never-ensured]
lifecycle.yaml:35:14: info: Released: in Ready, Soiled (to Inspect) and Released (to Retired) can hold at once, and the first is taken [order-decides]
  Inspect -Passed-> Ready; in Ready with {operation.name: "release"}
  {to: Inspect, rule: Soiled}
`},
		"a stable state begins retries anew, so that they end nothing": {
			[]string{`when: spent && !passed, after: 10m}`, `when: spent && !passed}`, `after: wipe.budget, retry: true}`, `when: stopped, retry: true}` + "\n    - {rule: Late, to: Retired, after: 1h}",
				"    means: Cooling down.\n", "    means: Cooling down.\n    stable: true\n", `after: 5m}`, `when: stopped}`}, `
lifecycle.yaml:20:41: error: Failed: in Inspect, Failed asks for lifecycle.retries, which is always 0 there: no retry that is counted leads to it [retries-never-grow]
lifecycle.yaml:21:14: error: Again: while nothing outside changes, moves follow each other without end: Inspect -Again-> Pause -Cooled-> Inspect [livelock]
  in Inspect with {}
  {to: Pause, rule: Again}
lifecycle.yaml:21:14: info: Again: in Inspect, Failed (to Retired) and Again (to Pause) can hold at once, and the first is taken [order-decides]
  in Inspect with {lifecycle.retries: 2}
  {to: Retired, rule: Failed}
lifecycle.yaml:21:14: info: Again: in Inspect, Passed (to Ready) and Again (to Pause) can hold at once, and the first is taken [order-decides]
  in Inspect with {probe.entry: 1, probe.good: true}
  {to: Ready, rule: Passed}
`},
		"a move that a mark ends": {
			[]string{`passed && !dirty`, `stopped && !dirty`, `when: dirty}`, `when: stopped && !dirty}`, "    means: Being inspected.\n", "    means: Being inspected.\n    marks: [Dirty]\n"}, `
lifecycle.yaml:21:14: info: Failed: in Inspect, Passed (to Ready) and Failed (to Retired) can hold at once, and the first is taken [order-decides]
  in Inspect with {lifecycle.age: 10m, lifecycle.retries: 2}
  {to: Ready, rule: Passed}
lifecycle.yaml:36:14: info: Released: in Ready, Soiled (to Inspect) and Released (to Retired) can hold at once, and the first is taken [order-decides]
  Inspect -Passed-> Ready; in Ready with {operation.name: "release"}
  {to: Inspect, rule: Soiled}
`},
		"facts that answer what is not taken apart are looked for": {
			[]string{`passed && !dirty`, `passed && ours`, `  claimed: claim.bound`, "  ours: hardware.model.endsWith(\"R7\") && hardware.cores * 2 > 100\n  claimed: claim.bound"}, `
lifecycle.yaml:20:14: warning: Passed: in Inspect, the guard of Passed can be an error, and the server would be halted [guard-error]
  in Inspect with {hardware.cores: 9223372036854775807, hardware.model: "R7", probe.entry: 1, probe.good: true}
  {halts: GuardError, rule: Passed}
lifecycle.yaml:20:14: error: Passed: in Inspect, Passed can enter Ready where NeverOfferDirty forbids it: a dirty server is never offered [safety-move]
  in Inspect with {lifecycle.marks: ["Dirty"], hardware.cores: 99, hardware.model: "R7", probe.entry: 1, probe.good: true}
  {halts: SafetyRule, rule: Passed}
undecided: hardware.model.endsWith("R7") is not taken apart: it may be true or false whatever else holds
undecided: hardware.cores * 2 > 100 is not taken apart: it may be true or false whatever else holds
`},
		"where no facts are found that answer it, the finding stays and says so": {
			[]string{`passed && !dirty`, `passed && ours`, `  claimed: claim.bound`, "  ours: hardware.model.startsWith(\"R7\") && hardware.model == \"X9\"\n  claimed: claim.bound"}, `
lifecycle.yaml:20:14: error: Passed: in Inspect, Passed can enter Ready where NeverOfferDirty forbids it: a dirty server is never offered [safety-move]
  in Inspect with {lifecycle.marks: ["Dirty"], hardware.model: "X9", probe.entry: 1, probe.good: true}
  {stays: true, ensures: [PowerOn]} (not confirmed)
undecided: hardware.model.startsWith("R7") is not taken apart: it may be true or false whatever else holds
`},
		"a proof that belongs to an entry breaks the circle": {
			[]string{`when: dirty}`, `when: passed || dirty}`}, `
lifecycle.yaml:35:14: info: Released: in Ready, Soiled (to Inspect) and Released (to Retired) can hold at once, and the first is taken [order-decides]
  Inspect -Passed-> Ready; in Ready with {probe.entry: 1, probe.good: true, operation.name: "release"}
  {to: Inspect, rule: Soiled}
`},
		"an operation that a move serves breaks the circle": {
			[]string{`when: dirty}`, `when: releaseAsked || dirty}`, `passed && !dirty`, `(passed || releaseAsked) && !dirty`}, `
lifecycle.yaml:35:14: error: Released: Released never fires: where its guard is true, a rule before it is taken (Soiled) [rule-never-fires]
`},
		"it breaks the circle also where every state accepts it": {
			[]string{`when: dirty}`, `when: releaseAsked && !running || dirty}`, `passed && !dirty`, `(passed || releaseAsked) && !dirty`,
				"    means: Being inspected.\n", "    means: Being inspected.\n    operations: [release]\n"}, `
lifecycle.yaml:21:14: info: Failed: in Inspect, Passed (to Ready) and Failed (to Retired) can hold at once, and the first is taken [order-decides]
  in Inspect with {lifecycle.age: 10m, lifecycle.retries: 2, operation.name: "release"}
  {to: Ready, rule: Passed}
lifecycle.yaml:36:14: info: Released: in Ready, Soiled (to Inspect) and Released (to Retired) can hold at once, and the first is taken [order-decides]
  Inspect -Passed-> Ready; in Ready with {operation.name: "release"}
  {to: Inspect, rule: Soiled}
`},
		"an exit for an operation that the state does not accept": {
			[]string{"    operations: [repair]\n", ""}, `
lifecycle.yaml:40:14: error: Repaired: in Retired, Repaired fires only for the operation repair, which the state does not accept [operation-unlisted]
`},
		"an exit for an operation that another state accepts": {
			[]string{"operations: [repair]", "operations: [release]"}, `
lifecycle.yaml:39:18: warning: Retired: the state accepts the operation release, and nothing is done about it there [operation-idle]
lifecycle.yaml:41:14: error: Repaired: in Retired, Repaired fires only for the operation repair, which the state does not accept [operation-unlisted]
`},
		"an operation that an exit serves which asks for any": {
			[]string{"operations: [repair]", "operations: [repair, release]", `operation.name == "repair"`, `operation.name != "None"`}, ``},
		"an operation that an effect serves": {
			[]string{"operations: [repair]", "operations: [repair, release]", "    exits:\n    - {rule: Repaired", "    ensure: [{do: Repair}]\n    exits:\n    - {rule: Repaired"}, ``},
		"an interrupt for an operation that no state accepts": {
			[]string{"    operations: [release]\n", "", "releaseAsked && !dirty", "claimed && !dirty",
				"states:\n", "interrupts:\n- {rule: Claimed, to: Retired, when: releaseAsked, except: [Retired]}\nstates:\n"}, `
lifecycle.yaml:14:10: error: Claimed: Claimed fires only for the operation release, which no state accepts that it is for [operation-unlisted]
`},
		"an interrupt for an operation that one state accepts": {
			[]string{"releaseAsked && !dirty", "claimed && !dirty",
				"states:\n", "interrupts:\n- {rule: Claimed, to: Retired, when: releaseAsked, except: [Retired]}\nstates:\n"}, ``},
		"a state that is left for passed by an interrupt that it does not accept": {
			[]string{"    exits:\n    - {rule: Repaired, to: Inspect, when: repairAsked}\n", "",
				"states:\n", "interrupts:\n- {rule: Repaired, to: Inspect, when: repairAsked, except: [Inspect]}\nstates:\n",
				"operations: [release]", "operations: [release, repair]", "    operations: [repair]\n", ""}, `
lifecycle.yaml:38:3: error: Retired: nothing leads out of Retired: a server that comes there stays until it is forced out [state-dead-end]
`},
		"retries break the circle, and a stable state begins them anew": {
			[]string{`when: spent && !passed, after: 10m}`, `when: spent && !passed}`, `after: wipe.budget, retry: true}`, `when: stopped, retry: true}` + "\n    - {rule: Late, to: Retired, after: 1h}", `after: 5m}`, `when: stopped}` + "\n    - {rule: Warm, to: Retired, after: 1h}"}, `
lifecycle.yaml:21:14: info: Again: in Inspect, Failed (to Retired) and Again (to Pause) can hold at once, and the first is taken [order-decides]
  in Inspect with {lifecycle.retries: 2}
  {to: Retired, rule: Failed}
lifecycle.yaml:21:14: info: Again: in Inspect, Passed (to Ready) and Again (to Pause) can hold at once, and the first is taken [order-decides]
  in Inspect with {probe.entry: 1, probe.good: true}
  {to: Ready, rule: Passed}
`},
		"overlapping exits": {
			[]string{`when: dirty}`, `when: dirty || running}`}, `
lifecycle.yaml:31:12: warning: Ready: Ready never wants PowerOff: where running holds the state is left [effect-never-ensured]
lifecycle.yaml:35:14: info: Released: in Ready, Soiled (to Inspect) and Released (to Retired) can hold at once, and the first is taken [order-decides]
  Inspect -Passed-> Ready; in Ready with {bmc.power: "On", operation.name: "release"}
  {to: Inspect, rule: Soiled}
`},
		"an effect that is never wanted, and a definition that nobody uses": {
			[]string{`{do: BootImage, when: stopped}`, `{do: BootImage, when: dirty}`}, `
lifecycle.yaml:6:3: warning: stopped: no guard uses the definition stopped [definition-unused]
lifecycle.yaml:32:12: warning: Ready: Ready never wants BootImage: where dirty holds the state is left [effect-never-ensured]
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), said(Check(compiled(t, c.rewrite...)))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTheReportOffersItsCounterexamplesAsScenarios(t *testing.T) {
	r := Check(compiled(t, `passed && !dirty`, `passed`, `{do: PowerOff, when: running}`, `{do: PowerOff, when: "!stopped"}`))
	want := `apiVersion: policy.metalaw.dev/v1alpha1
kind: Scenarios
scenarios:
- name: "safety-move: in Inspect, Passed can enter Ready where NeverOfferDirty forbids it: a dirty server is never offered"
  state: Inspect
  given: {lifecycle.marks: ["Dirty"], probe.entry: 1, probe.good: true}
  expect: {halts: SafetyRule, rule: Passed}
`
	if diff := cmp.Diff(want, r.Scenarios()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := Check(compiled(t)).Scenarios(); got != "" {
		t.Errorf("a lifecycle in order has the scenarios %q", got)
	}
}

func TestALifecycleThatIsTooLargeIsNotTakenForOneInOrder(t *testing.T) {
	got := said(check(compiled(t), 100, nil))
	want := `lifecycle.yaml: error: the lifecycle could not be verified: the conditions have no form of fewer than 100 nodes [verify-undecided]
undecided: the conditions have no form of fewer than 100 nodes
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatIsAssumedHolds(t *testing.T) {
	l := compiled(t, `{do: PowerOn, when: "!claimed"}`, `PowerOn`, "  claimed: claim.bound\n", "")
	if !Check(l).Diagnostics().HasErrors() {
		t.Error("a claimed server is not seen to be powered on")
	}
	if got := said(Check(l, engine.Axiom{Holds: "!claim.bound"})); got != "" {
		t.Errorf("where no server is claimed, it says %s", got)
	}
	want := "undecided: vocabulary: safety rule axiom: vocabulary:1:1: error: axiom: there is no fact \"claim.bond\" " +
		"(did you mean claim.bound?) [cel-unknown-fact]\n"
	if got := said(Check(l, engine.Axiom{Holds: "!claim.bond"})); !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
}
