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
			[]string{`{do: SwitchOn, when: "!sold"}`, `SwitchOn`, "  sold: lamp.sold\n", ""}, `
lifecycle.yaml:16:7: error: Test: in Test, SwitchOn can be wanted where NeverSold forbids it: a sold lamp is not ours to switch [safety-effect]
  in Test with {lamp.sold: true}
  {halts: SafetyRule, rule: SwitchOn}
`},
		"an effect whose rule does not hold and is not open": {
			[]string{`{do: SwitchOff, when: lit}`, `SwitchOff`}, `
lifecycle.yaml:5:3: warning: lit: no guard uses the definition lit [definition-unused]
lifecycle.yaml:31:7: error: Shelf: in Shelf, SwitchOff can be wanted where Settled forbids it: only what is on is switched off [safety-effect]
  Test -Passed-> Shelf; in Shelf with {}
  {halts: SafetyRule, rule: SwitchOff}
lifecycle.yaml:32:12: warning: Shelf: Shelf never wants Wrap: where dark holds the state is left [effect-never-ensured]
`},
		"an effect that would set a mark where that is forbidden": {
			[]string{`{do: Wrap, when: dark}`, `Wrap`, "  dark: lamp.power == \"Off\"\n", ""}, `
lifecycle.yaml:31:7: error: Shelf: in Shelf, Wrap can be wanted and would set Wrapped where WrappedCold forbids it: a lamp is wrapped only while off [safety-effect]
  Test -Passed-> Shelf; in Shelf with {lamp.power: "Unknown"}
  {halts: SafetyRule, rule: Wrap}
`},
		"a state in which an effect that is not wanted forbids to stay": {
			[]string{`- {do: Wrap, when: dark}`, "- {do: Wrap, when: dark}\n    - {do: Fill, when: dark && !sold}\n    - {do: Fill, when: sold && dark}"}, `
lifecycle.yaml:33:12: error: Shelf: in Shelf, which has Fill, a server can stay where NeverFullAndLit forbids it: what is filled and sold stays dark [safety-stay]
  Test -Passed-> Shelf; in Shelf with {lamp.power: "Unknown", lamp.sold: true}
  {halts: SafetyRule, rule: Fill}
`},
		"an exit that leads away from where an effect forbids to stay": {
			[]string{`- {do: Wrap, when: dark}`, "- {do: Wrap, when: dark}\n    - {do: Fill, when: dark}", `{rule: Scratch, to: Test, when: scratched}`,
				`{rule: Scratch, to: Test, when: scratched || sold && !dark}`}, `
lifecycle.yaml:36:14: info: Sale: in Shelf, Scratch (to Test) and Sale (to Bin) can hold at once, and the first is taken [order-decides]
  Test -Passed-> Shelf; in Shelf with {lamp.power: "Unknown", lamp.sold: true, operation.name: "sell"}
  {to: Test, rule: Scratch}
`},
		"a move that enters where a safety rule forbids it": {
			[]string{`good && !scratched`, `good`}, `
lifecycle.yaml:19:14: error: Passed: in Test, Passed can enter Shelf where NoScratchOnShelf forbids it: a scratched lamp is never shown [safety-move]
  in Test with {lifecycle.marks: ["Scratched"], report.entry: 1, report.good: true}
  {halts: SafetyRule, rule: Passed}
`},
		"a move that clears the mark may enter, and clears where a safety rule forbids it": {
			[]string{`when: good && !scratched}`, `when: good, clears: [Scratched]}`}, `
lifecycle.yaml:19:14: error: Passed: in Test, Passed can clear Scratched where PolishedCold forbids it: a lamp is polished only while off [safety-move]
  in Test with {lamp.power: "Unknown", report.entry: 1, report.good: true}
  {halts: SafetyRule, rule: Passed}
`},
		"an invariant that can be violated": {
			[]string{"  Bin:\n", "  Bin:\n", "    - {rule: Mended, to: Test, when: mendAsked}\n",
				"    - {rule: Mended, to: Test, when: mendAsked}\ninvariants:\n- {rule: NeverLitOnTheShelf, must: \"state != 'Shelf' || !lit\"}\n- {rule: NeverSwitchSold, must: \"!sold || !acting()\"}\n"}, `
lifecycle.yaml:43:10: error: NeverLitOnTheShelf: in Shelf, the invariant NeverLitOnTheShelf can be violated: state != 'Shelf' || !lit [invariant-violated]
  Test -Passed-> Shelf; in Shelf with {lamp.power: "On"}
  {halts: InvariantViolated, rule: NeverLitOnTheShelf}
`},
		"a state that no rule leads to, and one that is only adopted": {
			[]string{"  Bin:\n", "  Attic:\n    means: Old.\n    stable: true\n    exits:\n    - {rule: Found, to: Test, when: lit}\n" +
				"  Cellar:\n    means: Older.\n    stable: true\n    exits:\n    - {rule: Dug, to: Test, when: dark}\n  Bin:\n"}, `
lifecycle.yaml:36:3: warning: Attic: no rule that can fire leads to Attic: only a server that was left by another shop is in it [state-unreachable]
lifecycle.yaml:41:3: error: Cellar: no rule that can fire leads to Cellar [state-unreachable]
`},
		"a state that nothing leads out of": {
			[]string{"    exits:\n    - {rule: Mended, to: Test, when: mendAsked}\n", "", "  mendAsked: operation.name == \"mend\"\n", ""}, `
lifecycle.yaml:35:3: error: Bin: nothing leads out of Bin: a server that comes there stays until it is forced out [state-dead-end]
lifecycle.yaml:38:18: warning: Bin: the state accepts the operation mend, and nothing is done about it there [operation-idle]
`},
		"a state that nothing that can fire leads out of": {
			[]string{`when: mendAsked}`, `when: mendAsked && sellAsked}`}, `
lifecycle.yaml:36:3: error: Bin: nothing leads out of Bin: a server that comes there stays until it is forced out [state-dead-end]
lifecycle.yaml:41:14: error: Mended: Mended never fires: no facts make mendAsked && sellAsked true [rule-never-fires]
`},
		"states that lead round and never to rest": {
			[]string{"to: Shelf, when: good", "to: Pause, when: good", "to: Bin, when: spent &&", "to: Pause, when: spent &&"}, `
lifecycle.yaml:14:3: error: Test: no way from Test leads to a stable state: a server that comes there never rests [state-dead-end]
lifecycle.yaml:22:3: error: Pause: no way from Pause leads to a stable state: a server that comes there never rests [state-dead-end]
lifecycle.yaml:26:3: error: Shelf: no rule that can fire leads to Shelf [state-unreachable]
lifecycle.yaml:36:3: error: Bin: no rule that can fire leads to Bin [state-unreachable]
`},
		"an exit that leads to its own state": {
			[]string{"when: sellAsked && !scratched}", "when: sellAsked && !scratched}\n    - {rule: Keep, to: Shelf, when: lit}"}, `
lifecycle.yaml:31:12: warning: Shelf: Shelf never wants SwitchOff: where lit holds the state is left [effect-never-ensured]
lifecycle.yaml:36:14: error: Keep: in Shelf, Keep leads to Shelf itself: where it is taken nothing moves, and nothing is ensured either [exit-to-itself]
  Test -Passed-> Shelf; in Shelf with {lamp.power: "On"}
  {stays: true, ensures: []}
lifecycle.yaml:36:14: info: Keep: in Shelf, Sale (to Bin) and Keep (to Shelf) can hold at once, and the first is taken [order-decides]
  Test -Passed-> Shelf; in Shelf with {lamp.power: "On", operation.name: "sell"}
  {to: Bin, rule: Sale}
lifecycle.yaml:36:14: info: Keep: in Shelf, Scratch (to Test) and Keep (to Shelf) can hold at once, and the first is taken [order-decides]
  Test -Passed-> Shelf; in Shelf with {lifecycle.marks: ["Scratched"], lamp.power: "On"}
  {to: Test, rule: Scratch}
`},
		"a rule that is always taken by another": {
			[]string{"when: sellAsked && !scratched}", "when: sellAsked && !scratched}\n    - {rule: Sold, to: Test, when: sellAsked && lit}"}, `
lifecycle.yaml:36:14: error: Sold: Sold never fires: where its guard is true, a rule before it is taken (Scratch, Sale) [rule-never-fires]
`},
		"thresholds are ordered": {
			[]string{`spent: lifecycle.retries >= 2`, "spent: lifecycle.retries >= 2 && lifecycle.retries < 2"}, `
lifecycle.yaml:20:14: error: Failed: Failed never fires: no facts make spent && !good true [rule-never-fires]
`},
		"a guard that is always true": {
			[]string{`when: scratched}`, `when: scratched || lit || !lit}`}, `
lifecycle.yaml:34:39: warning: Scratch: in Shelf, the guard of Scratch is always true where it is asked: Sale can never fire [guard-always-true]
lifecycle.yaml:35:14: error: Sale: Sale never fires: where its guard is true, a rule before it is taken (Scratch) [rule-never-fires]
`},
		"a deadline that comes too late": {
			[]string{`after: 5m}`, "after: 5m}\n    - {rule: Frozen, to: Bin, when: dark, after: 6m}"}, `
lifecycle.yaml:26:50: warning: Frozen: in Pause, the deadline of Frozen is never reached: Cooled leaves the state sooner [deadline-too-late]
`},
		"a deadline that comes too late for what it alone would end": {
			[]string{`after: lamp.budget, retry: true}`, `after: 5m, retry: true}`}, `
lifecycle.yaml:20:60: error: Failed: in Test, the deadline of Failed is never reached, because Again leaves the state sooner, and without it servers go round by their deadlines for ever: Test -Again-> Pause -Cooled-> Test [deadline-too-late]
  in Test with {lifecycle.age: 5m, lifecycle.retries: 2}
  {to: Pause, rule: Again}
`},
		"the same where a guard ends it sooner": {
			[]string{`after: lamp.budget, retry: true}`, "after: 5m, retry: true}\n    - {rule: Tired, to: Bin, when: spent}"}, `
lifecycle.yaml:20:60: warning: Failed: in Test, the deadline of Failed is never reached: Again leaves the state sooner [deadline-too-late]
lifecycle.yaml:22:14: info: Tired: in Test, Again (to Pause) and Tired (to Bin) can hold at once, and the first is taken [order-decides]
  in Test with {lifecycle.age: 5m, lifecycle.retries: 2}
  {to: Pause, rule: Again}
lifecycle.yaml:22:14: info: Tired: in Test, Passed (to Shelf) and Tired (to Bin) can hold at once, and the first is taken [order-decides]
  in Test with {lifecycle.retries: 2, report.entry: 1, report.good: true}
  {to: Shelf, rule: Passed}
`},
		"the same where a stable state is on the way": {
			[]string{`after: lamp.budget, retry: true}`, `after: 5m}`, "    means: Cooling down.\n", "    means: Cooling down.\n    stable: true\n",
				`when: spent && !good, after: 10m`, `when: "!good", after: 10m`, "  spent: lifecycle.retries >= 2\n", ""}, `
lifecycle.yaml:19:53: warning: Failed: in Test, the deadline of Failed is never reached: Again leaves the state sooner [deadline-too-late]
`},
		"a deadline too late that leads back into the same round": {
			[]string{`to: Bin, when: spent && !good, after: 10m`, `to: Pause, when: "!good", after: 10m`,
				`after: lamp.budget, retry: true}`, `after: 5m}`, "  spent: lifecycle.retries >= 2\n", ""}, `
lifecycle.yaml:19:55: warning: Failed: in Test, the deadline of Failed is never reached: Again leaves the state sooner [deadline-too-late]
`},
		"a retry that nobody counts": {
			[]string{`after: lamp.budget, retry: true}`, `after: lamp.budget}`}, `
lifecycle.yaml:20:37: error: Failed: in Test, Failed asks for lifecycle.retries, which is always 0: no rule that can fire counts a retry [retries-never-grow]
`},
		"a retry that a stable state forgets before anybody asks": {
			[]string{`after: lamp.budget, retry: true}`, `after: lamp.budget}`, `{do: Wrap, when: dark}`, `{do: Wrap, when: "dark && !spent"}`,
				`when: mendAsked}`, `when: mendAsked, retry: true}`, `when: spent && !good`, `when: "!good"`}, `
lifecycle.yaml:32:24: error: Wrap: in Shelf, Wrap asks for lifecycle.retries, which is always 0 there: no retry that is counted leads to it [retries-never-grow]
`},
		"an operation that leads elsewhere than it has to": {
			[]string{`to: Test, when: mendAsked`, `to: Shelf, when: mendAsked && !scratched`}, `
lifecycle.yaml:41:14: error: Mended: in Bin, Mended serves the operation mend and leads to Shelf; that operation is for the state Test, which is known by its name [operation-destination]
  Test -Failed-> Bin; in Bin with {operation.name: "mend"}
  {to: Shelf, rule: Mended}
`},
		"an operation that leads nowhere": {
			[]string{`to: Test, when: mendAsked`, `to: Bin, when: mendAsked`}, `
lifecycle.yaml:36:3: error: Bin: nothing leads out of Bin: a server that comes there stays until it is forced out [state-dead-end]
lifecycle.yaml:41:14: error: Mended: in Bin, Mended leads to Bin itself: where it is taken nothing moves, and nothing is ensured either [exit-to-itself]
  Test -Failed-> Bin; in Bin with {operation.name: "mend"}
  {stays: true, ensures: []}
lifecycle.yaml:41:14: error: Mended: in Bin, Mended serves the operation mend and leads to Bin; that operation is for the state Test, which is known by its name [operation-destination]
  Test -Failed-> Bin; in Bin with {operation.name: "mend"}
  {stays: true, ensures: []}
`},
		"a rule that leads elsewhere whether or not the operation is asked for": {
			[]string{"    - {rule: Mended, to: Test, when: mendAsked}\n", "    - {rule: Mended, to: Test, when: mendAsked && !sold}\n    - {rule: Back, to: Shelf, when: sold && !scratched}\n"}, `
`},
		"a mark that is given up": {
			[]string{`when: mendAsked}`, `when: mendAsked, clears: [Wrapped]}`}, `
lifecycle.yaml:41:14: warning: Mended: Mended clears Wrapped: its warranty ends [mark-given-up]
`},
		"a division that can be an error": {
			[]string{`spent: lifecycle.retries >= 2`, "spent: lamp.watts / lamp.volts > 2"}, `
lifecycle.yaml:20:14: warning: Failed: in Test, the guard of Failed can be an error, and the server would be halted [guard-error]
  in Test with {lifecycle.age: 10m, lamp.volts: 0}
  {halts: GuardError, rule: Failed}
undecided: lamp.watts / lamp.volts > 2 is not taken apart: it may be true or false whatever else holds
`},
		"text that is not taken apart": {
			[]string{`when: lit}`, `when: lit && ours}`, `  sold: lamp.sold`, "  ours: lamp.model.startsWith(\"R7\")\n  sold: lamp.sold",
				`when: mendAsked}`, "when: mendAsked && ours && !exactly}", `  dark:`, "  exactly: lamp.model == \"R750\"\n  dark:"}, `
undecided: lamp.model.startsWith("R7") is not taken apart: it may be true or false whatever else holds
`},
		"moves that follow each other without end": {
			[]string{`good && !scratched`, `dark && !scratched`, `when: scratched}`, `when: dark || scratched}`}, `
lifecycle.yaml:19:14: error: Passed: while nothing outside changes, moves follow each other without end: Test -Passed-> Shelf -Scratch-> Test [livelock]
  in Test with {}
  {to: Shelf, rule: Passed}
lifecycle.yaml:20:14: info: Failed: in Test, Passed (to Shelf) and Failed (to Bin) can hold at once, and the first is taken [order-decides]
  in Test with {lifecycle.age: 10m, lifecycle.retries: 2}
  {to: Shelf, rule: Passed}
lifecycle.yaml:32:12: warning: Shelf: Shelf never wants Wrap: where dark holds the state is left [effect-never-ensured]
lifecycle.yaml:35:14: info: Sale: in Shelf, Scratch (to Test) and Sale (to Bin) can hold at once, and the first is taken [order-decides]
  Test -Passed-> Shelf; in Shelf with {operation.name: "sell"}
  {to: Test, rule: Scratch}
`},
		"a stable state begins retries anew, so that they end nothing": {
			[]string{`when: spent && !good, after: 10m}`, `when: spent && !good}`, `after: lamp.budget, retry: true}`, `when: dark, retry: true}` + "\n    - {rule: Late, to: Bin, after: 1h}",
				"    means: Cooling down.\n", "    means: Cooling down.\n    stable: true\n", `after: 5m}`, `when: dark}`}, `
lifecycle.yaml:20:37: error: Failed: in Test, Failed asks for lifecycle.retries, which is always 0 there: no retry that is counted leads to it [retries-never-grow]
lifecycle.yaml:21:14: error: Again: while nothing outside changes, moves follow each other without end: Test -Again-> Pause -Cooled-> Test [livelock]
  in Test with {}
  {to: Pause, rule: Again}
lifecycle.yaml:21:14: info: Again: in Test, Failed (to Bin) and Again (to Pause) can hold at once, and the first is taken [order-decides]
  in Test with {lifecycle.retries: 2}
  {to: Bin, rule: Failed}
lifecycle.yaml:21:14: info: Again: in Test, Passed (to Shelf) and Again (to Pause) can hold at once, and the first is taken [order-decides]
  in Test with {report.entry: 1, report.good: true}
  {to: Shelf, rule: Passed}
`},
		"a move that a mark ends": {
			[]string{`good && !scratched`, `dark && !scratched`, `when: scratched}`, `when: dark && !scratched}`, "    means: Being tested.\n", "    means: Being tested.\n    marks: [Scratched]\n"}, `
lifecycle.yaml:21:14: info: Failed: in Test, Passed (to Shelf) and Failed (to Bin) can hold at once, and the first is taken [order-decides]
  in Test with {lifecycle.age: 10m, lifecycle.retries: 2}
  {to: Shelf, rule: Passed}
lifecycle.yaml:36:14: info: Sale: in Shelf, Scratch (to Test) and Sale (to Bin) can hold at once, and the first is taken [order-decides]
  Test -Passed-> Shelf; in Shelf with {operation.name: "sell"}
  {to: Test, rule: Scratch}
`},
		"facts that answer what is not taken apart are looked for": {
			[]string{`good && !scratched`, `good && ours`, `  sold: lamp.sold`, "  ours: lamp.model.endsWith(\"R7\") && lamp.watts * 2 > 100\n  sold: lamp.sold"}, `
lifecycle.yaml:20:14: warning: Passed: in Test, the guard of Passed can be an error, and the server would be halted [guard-error]
  in Test with {lamp.watts: 9223372036854775807, lamp.model: "R7", report.entry: 1, report.good: true}
  {halts: GuardError, rule: Passed}
lifecycle.yaml:20:14: error: Passed: in Test, Passed can enter Shelf where NoScratchOnShelf forbids it: a scratched lamp is never shown [safety-move]
  in Test with {lifecycle.marks: ["Scratched"], lamp.watts: 99, lamp.model: "R7", report.entry: 1, report.good: true}
  {halts: SafetyRule, rule: Passed}
undecided: lamp.model.endsWith("R7") is not taken apart: it may be true or false whatever else holds
undecided: lamp.watts * 2 > 100 is not taken apart: it may be true or false whatever else holds
`},
		"where no facts are found that answer it, the finding stays and says so": {
			[]string{`good && !scratched`, `good && ours`, `  sold: lamp.sold`, "  ours: lamp.model.startsWith(\"R7\") && lamp.model == \"X9\"\n  sold: lamp.sold"}, `
lifecycle.yaml:20:14: error: Passed: in Test, Passed can enter Shelf where NoScratchOnShelf forbids it: a scratched lamp is never shown [safety-move]
  in Test with {lifecycle.marks: ["Scratched"], lamp.model: "X9", report.entry: 1, report.good: true}
  {stays: true, ensures: [SwitchOn]} (not confirmed)
undecided: lamp.model.startsWith("R7") is not taken apart: it may be true or false whatever else holds
`},
		"a proof that belongs to an entry breaks the circle": {
			[]string{`when: scratched}`, `when: good || scratched}`}, `
lifecycle.yaml:35:14: info: Sale: in Shelf, Scratch (to Test) and Sale (to Bin) can hold at once, and the first is taken [order-decides]
  Test -Passed-> Shelf; in Shelf with {report.entry: 1, report.good: true, operation.name: "sell"}
  {to: Test, rule: Scratch}
`},
		"an operation that a move serves breaks the circle": {
			[]string{`when: scratched}`, `when: sellAsked || scratched}`, `good && !scratched`, `(good || sellAsked) && !scratched`}, `
lifecycle.yaml:35:14: error: Sale: Sale never fires: where its guard is true, a rule before it is taken (Scratch) [rule-never-fires]
`},
		"it breaks the circle also where every state accepts it": {
			[]string{`when: scratched}`, `when: sellAsked && !lit || scratched}`, `good && !scratched`, `(good || sellAsked) && !scratched`,
				"    means: Being tested.\n", "    means: Being tested.\n    operations: [sell]\n"}, `
lifecycle.yaml:21:14: info: Failed: in Test, Passed (to Shelf) and Failed (to Bin) can hold at once, and the first is taken [order-decides]
  in Test with {lifecycle.age: 10m, lifecycle.retries: 2, operation.name: "sell"}
  {to: Shelf, rule: Passed}
lifecycle.yaml:36:14: info: Sale: in Shelf, Scratch (to Test) and Sale (to Bin) can hold at once, and the first is taken [order-decides]
  Test -Passed-> Shelf; in Shelf with {operation.name: "sell"}
  {to: Test, rule: Scratch}
`},
		"an exit for an operation that the state does not accept": {
			[]string{"    operations: [mend]\n", ""}, `
lifecycle.yaml:40:14: error: Mended: in Bin, Mended fires only for the operation mend, which the state does not accept [operation-unlisted]
`},
		"an exit for an operation that another state accepts": {
			[]string{"operations: [mend]", "operations: [sell]"}, `
lifecycle.yaml:39:18: warning: Bin: the state accepts the operation sell, and nothing is done about it there [operation-idle]
lifecycle.yaml:41:14: error: Mended: in Bin, Mended fires only for the operation mend, which the state does not accept [operation-unlisted]
`},
		"an operation that an exit serves which asks for any": {
			[]string{"operations: [mend]", "operations: [mend, sell]", `operation.name == "mend"`, `operation.name != "None"`}, ``},
		"an operation that an effect serves": {
			[]string{"operations: [mend]", "operations: [mend, sell]", "    exits:\n    - {rule: Mended", "    ensure: [{do: Mend}]\n    exits:\n    - {rule: Mended"}, ``},
		"an interrupt for an operation that no state accepts": {
			[]string{"    operations: [sell]\n", "", "sellAsked && !scratched", "sold && !scratched",
				"states:\n", "interrupts:\n- {rule: Sold, to: Bin, when: sellAsked, except: [Bin]}\nstates:\n"}, `
lifecycle.yaml:14:10: error: Sold: Sold fires only for the operation sell, which no state accepts that it is for [operation-unlisted]
`},
		"an interrupt for an operation that one state accepts": {
			[]string{"sellAsked && !scratched", "sold && !scratched",
				"states:\n", "interrupts:\n- {rule: Sold, to: Bin, when: sellAsked, except: [Bin]}\nstates:\n"}, ``},
		"a state that is left for good by an interrupt that it does not accept": {
			[]string{"    exits:\n    - {rule: Mended, to: Test, when: mendAsked}\n", "",
				"states:\n", "interrupts:\n- {rule: Repaired, to: Test, when: mendAsked, except: [Test]}\nstates:\n",
				"operations: [sell]", "operations: [sell, mend]", "    operations: [mend]\n", ""}, `
lifecycle.yaml:38:3: error: Bin: nothing leads out of Bin: a server that comes there stays until it is forced out [state-dead-end]
`},
		"retries break the circle, and a stable state begins them anew": {
			[]string{`when: spent && !good, after: 10m}`, `when: spent && !good}`, `after: lamp.budget, retry: true}`, `when: dark, retry: true}` + "\n    - {rule: Late, to: Bin, after: 1h}", `after: 5m}`, `when: dark}` + "\n    - {rule: Warm, to: Bin, after: 1h}"}, `
lifecycle.yaml:21:14: info: Again: in Test, Failed (to Bin) and Again (to Pause) can hold at once, and the first is taken [order-decides]
  in Test with {lifecycle.retries: 2}
  {to: Bin, rule: Failed}
lifecycle.yaml:21:14: info: Again: in Test, Passed (to Shelf) and Again (to Pause) can hold at once, and the first is taken [order-decides]
  in Test with {report.entry: 1, report.good: true}
  {to: Shelf, rule: Passed}
`},
		"overlapping exits": {
			[]string{`when: scratched}`, `when: scratched || lit}`}, `
lifecycle.yaml:31:12: warning: Shelf: Shelf never wants SwitchOff: where lit holds the state is left [effect-never-ensured]
lifecycle.yaml:35:14: info: Sale: in Shelf, Scratch (to Test) and Sale (to Bin) can hold at once, and the first is taken [order-decides]
  Test -Passed-> Shelf; in Shelf with {lamp.power: "On", operation.name: "sell"}
  {to: Test, rule: Scratch}
`},
		"an effect that is never wanted, and a definition that nobody uses": {
			[]string{`{do: Wrap, when: dark}`, `{do: Wrap, when: scratched}`}, `
lifecycle.yaml:6:3: warning: dark: no guard uses the definition dark [definition-unused]
lifecycle.yaml:32:12: warning: Shelf: Shelf never wants Wrap: where scratched holds the state is left [effect-never-ensured]
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
	r := Check(compiled(t, `good && !scratched`, `good`, `{do: SwitchOff, when: lit}`, `{do: SwitchOff, when: "!dark"}`))
	want := `apiVersion: policy.metalaw.dev/v1alpha1
kind: Scenarios
scenarios:
- name: "safety-move: in Test, Passed can enter Shelf where NoScratchOnShelf forbids it: a scratched lamp is never shown"
  state: Test
  given: {lifecycle.marks: ["Scratched"], report.entry: 1, report.good: true}
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
	l := compiled(t, `{do: SwitchOn, when: "!sold"}`, `SwitchOn`, "  sold: lamp.sold\n", "")
	if !Check(l).Diagnostics().HasErrors() {
		t.Error("a sold lamp is not seen to be switched on")
	}
	if got := said(Check(l, engine.Axiom{Holds: "!lamp.sold"})); got != "" {
		t.Errorf("where no lamp is sold, it says %s", got)
	}
	want := "undecided: vocabulary: safety rule axiom: vocabulary:1:1: error: axiom: there is no fact \"lamp.gold\" " +
		"(did you mean lamp.sold?) [cel-unknown-fact]\n"
	if got := said(Check(l, engine.Axiom{Holds: "!lamp.gold"})); !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
}
