// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
)

func TestCompileNamesThePlaceOfEachMistake(t *testing.T) {
	replace := func(old, fresh string) string {
		if !strings.Contains(fleet, old) {
			t.Fatalf("the fixture does not contain %q", old)
		}
		return strings.Replace(fleet, old, fresh, 1)
	}
	for name, c := range map[string]struct{ source, want string }{
		"a fact that does not exist": {
			replace(`bmc.power == "On"`, `bmc.powre == "On"`),
			`lifecycle.yaml:5:12: error: running: there is no fact "bmc.powre" (did you mean bmc.power?) [cel-unknown-fact]`},
		"a word that the enum does not have": {
			replace(`bmc.power == "Off"`, `bmc.power == "Of"`),
			`lifecycle.yaml:6:25: error: stopped: bmc.power is never "Of" (it is one of On, Off, Unknown) [cel-enum]`},
		"a comparison of different types": {
			replace(`hardware.cores > 60`, `hardware.cores > "60"`),
			`lifecycle.yaml:10:25: error: large: > cannot combine int with string (both sides must have the same type) [cel-type]`},
		"an age compared with something that is no literal": {
			replace(`probe.running >= duration("10m")`, `probe.running >= wipe.budget`),
			`lifecycle.yaml:8:16: error: probed: probe.running changes with time and may only be compared with a duration literal (write probe.running >= duration("5m")) [cel-age]`},
		"a definition that is no condition": {
			replace(`claimed: claim.bound`, `claimed: hardware.cores`),
			`lifecycle.yaml:7:12: error: claimed: the expression yields int, not a boolean (compare it with something) [cel-not-bool]`},
		"a mark that nothing sets": {
			replace(`marked("Dirty")`, `marked("Dity")`),
			`lifecycle.yaml:9:17: error: dirty: no state sets the mark "Dity" (did you mean Dirty?) [mark-unknown]`},
		"a mark that nothing sets, in other quotes": {
			replace(`marked("Dirty")`, `marked( 'Dity')`),
			`lifecycle.yaml:9:18: error: dirty: no state sets the mark "Dity" (did you mean Dirty?) [mark-unknown]`},
		"a mark that nothing sets, asked for in the list": {
			replace(`marked("Dirty")`, `hardware.cores > 5 && "Lost" in lifecycle.marks`),
			`lifecycle.yaml:9:32: error: dirty: no state sets the mark "Lost" (a mark is set by a state's marks or by the engine) [mark-unknown]`},
		"a mark that nothing sets, among several": {
			replace(`marked("Dirty")`, `sets.contains(lifecycle.marks, ["Dirty", "Lost"])`),
			`lifecycle.yaml:9:51: error: dirty: no state sets the mark "Lost" (a mark is set by a state's marks or by the engine) [mark-unknown]`},
		"a mark that nothing sets, behind letters of several bytes": {
			replace(`marked("Dirty")`, `hardware.cores < "Größe".size() && marked("Lost")`),
			`lifecycle.yaml:9:52: error: dirty: no state sets the mark "Lost" (a mark is set by a state's marks or by the engine) [mark-unknown]`},
		"a definition that asks for a state that there is not": {
			replace(`marked("Dirty")`, `lifecycle.state == "Read" || marked("Dirty")`),
			`lifecycle.yaml:9:29: error: dirty: there is no state "Read" (did you mean Ready?) [state-unknown]`},
		"a definition that asks for several, one of which there is not": {
			replace(`marked("Dirty")`, `lifecycle.state in ["Ready", "Gone"] || marked("Dirty")`),
			`lifecycle.yaml:9:39: error: dirty: there is no state "Gone" (states: Inspect, Ready, Retired) [state-unknown]`},
		"a rule with the name of a move that the engine makes": {
			replace("rule: Passed", "rule: Migrated"),
			`lifecycle.yaml:20:14: error: Migrated: moves that metalaw makes by itself have this name, and no rule of a bundle can (name it by what has happened when it fires, for example ProbeReported) [rule-name]`},
		"a state whose name is longer than what is stored": {
			replace("migrate:", "  B"+strings.Repeat("i", 63)+": {means: Gone too., stable: true}\nmigrate:"),
			`lifecycle.yaml:34:3: error: "B` + strings.Repeat("i", 63) + `" cannot be a state's name (write one word in upper camel case with at most 63 letters and digits, for example BurnIn) [state-name]`},
		"a state whose name a diagram would misread": {
			replace("migrate:", "  \"Retired --> Ready\": {means: Gone too., stable: true}\nmigrate:"),
			`lifecycle.yaml:34:3: error: "Retired --> Ready" cannot be a state's name (write one word in upper camel case with at most 63 letters and digits, for example BurnIn) [state-name]`},
		"a state whose name is a boolean": {
			replace("migrate:", "  \"Off\": {means: Gone too., stable: true}\nmigrate:"),
			`lifecycle.yaml:34:3: error: "Off" cannot be a state's name, because YAML readers take it for something else than text (choose another word, for example BurnIn) [state-name]`},
		"a mark whose name cannot be stored": {
			replace("    marks: [", "    marks: [Lost mark, "),
			`lifecycle.yaml:16:13: error: Inspect: "Lost mark" cannot be a mark's name (write one word in upper camel case with at most 63 letters and digits, for example BurntIn) [mark-name]`},
		"a mark that a state sets twice": {
			replace("    marks: [", "    marks: [Lost, Lost, "),
			`lifecycle.yaml:16:19: error: Inspect: the state sets the mark "Lost" twice (take one of them out) [mark-duplicate]`},
		"more marks than a server can store": {
			replace("    marks: [", "    marks: [M1, M2, M3, M4, M5, M6, M7, M8, M9, M10, M11, M12, M13, M14, M15, M16, M17, M18, "),
			`lifecycle.yaml:16:84: error: Inspect: more than 16 marks of its own (take out those that no rule asks for) [mark-too-many]`},
		"a guard with a name that is not defined": {
			replace(`when: large && running`, `when: large && runnng`),
			`lifecycle.yaml:12:45: error: Broke: "runnng" is not defined (did you mean running?) [guard-unknown-atom]`},
		"a guard that reads a raw fact": {
			replace(`when: probed,`, `when: claim.bound,`),
			`lifecycle.yaml:20:39: error: Passed: a guard combines defined names only (give the raw fact a name under define and use that name here) [guard-raw-fact]`},
		"a target that does not exist": {
			replace(`to: Ready, when: probed`, `to: Readdy, when: probed`),
			`lifecycle.yaml:20:26: error: Passed: there is no state "Readdy" (did you mean Ready?) [state-unknown]`},
		"two rules of one name": {
			replace(`rule: TooSlow`, `rule: Passed`),
			`lifecycle.yaml:21:14: error: Passed: the rule Passed exists already in line 20 (rule names are metric labels and condition reasons: each must be unique) [rule-duplicate]`},
		"two rules of one name in one line": {
			replace("    exits:\n    - {rule: Reinspect, to: Inspect, when: \"!claimed && dirty\", retry: true}",
				"    exits: [{rule: Reinspect, to: Inspect, when: running}, {rule: Reinspect, to: Retired, when: probed}]"),
			`lifecycle.yaml:29:67: error: Reinspect: the rule Reinspect exists already in line 29 (rule names are metric labels and condition reasons: each must be unique) [rule-duplicate]`},
		"an effect that does not exist": {
			replace(`    - PowerOn`, `    - PwerOn`),
			`lifecycle.yaml:18:7: error: Inspect: there is no effect "PwerOn" (did you mean PowerOn?) [effect-unknown]`},
		"a parameter that the effect does not have": {
			replace(`graceful: 5s`, `gracfull: 5s`),
			`lifecycle.yaml:27:29: error: PowerOff: PowerOff has no parameter "gracfull" (the reference page lists the parameters) [param-unknown]`},
		"a state that is not stable and has no deadline": {
			replace(`    - {rule: TooSlow, to: Retired, after: wipe.budget}`+"\n", ``),
			`lifecycle.yaml:14:3: error: Inspect: a server may wait here for ever: the state is not stable and has no unconditional deadline (add an exit with after: and no when:, or mark the state stable: true) [deadline-missing]`},
		"a bare Off": {
			replace(`means: Gone.`, `means: Off`),
			`lifecycle.yaml:32:12: error: means is a bare Off, which YAML readers take for a boolean (write "Off" in quotes) [yaml-bare-boolean]`},
		"a key that does not exist": {
			replace(`    stable: true
    operations`, `    stabel: true
    operations`),
			`lifecycle.yaml:24:5: error: the state Ready has no key "stabel" (known keys: means, stable, marks, operations, ensure, exits) [yaml-unknown-key]`},
		"a key twice": {
			replace("initial: Inspect\n", "initial: Inspect\ninitial: Retired\n"),
			`lifecycle.yaml:4:1: error: the lifecycle has the key "initial" twice (it is set first in line 3; keep one of the two) [yaml-duplicate-key]`},
		"a tab": {
			replace("    means: Gone.", "\tmeans: Gone."),
			`lifecycle.yaml:32:1: error: a tab is used for indentation (YAML indents with spaces only) [yaml-tab]`},
		"a migration of a state that is still there": {
			replace("migrate: {Legacy: Retired}", "migrate: {Ready: Retired}"),
			`lifecycle.yaml:34:18: error: migrate: the state "Ready" is still defined (remove the line) [migrate-needless]`},
		"an invariant about an effect that does not exist": {
			replace("ensuring('PowerOn')", "ensuring('PoweredOn')"),
			`lifecycle.yaml:36:61: error: OffWhileFree: there is no effect "PoweredOn" (did you mean PowerOn?) [guard-unknown-effect]`},
		"an operation that does not exist": {
			replace("operations: [release]", "operations: [give]"),
			`lifecycle.yaml:25:18: error: Ready: there is no operation "give" (operations: release) [operation-unknown]`},
		"a saying about a rule that does not exist": {
			replace("migrate: {Legacy: Retired}", "says: {Gone: It went through.}\nmigrate: {Legacy: Retired}"),
			`lifecycle.yaml:34:8: error: Gone: says: there is no rule "Gone" (name the rule of an exit or of an interrupt) [rule-unknown]`},
		"a deadline that is neither a length nor a fact": {
			replace("after: wipe.budget", "after: soon"),
			`lifecycle.yaml:21:43: error: TooSlow: "soon" is neither a duration nor a duration fact (write a duration such as 15m, or the name of a duration fact such as wipe.budget) [after-type]`},
		"a deadline longer than can be counted with": {
			replace("after: wipe.budget", "after: 9999999h"),
			`lifecycle.yaml:21:43: error: TooSlow: after is 9999999h, and a deadline is at most 2562047h (write a shorter duration such as 15m; a state in which servers may wait for ever is stable: true) [after-range]`},
		"a condition that is left empty": {
			replace(`when: probed,`, `when: ,`),
			`lifecycle.yaml:20:39: error: Passed: the condition is empty (write defined names combined with &&, || and !, or take the key out) [cel-empty]`},
		"a condition that is nothing": {
			replace(`when: probed,`, `when: ~,`),
			`lifecycle.yaml:20:39: error: Passed: the condition is empty (write defined names combined with &&, || and !, or take the key out) [cel-empty]`},
		"an exit without any condition": {
			replace("when: probed, clears", "clears"),
			`lifecycle.yaml:20:14: error: Passed: the rule Passed has neither when nor after: it would fire at once (add when: or after:) [exit-unguarded]`},
		"an empty file": {
			"", `lifecycle.yaml:1:1: error: the file is empty (write the file or leave its key out) [yaml-empty]`},
	} {
		t.Run(name, func(t *testing.T) {
			l, found, err := Compile("lifecycle.yaml", []byte(c.source), words())
			if err != nil {
				t.Fatal(err)
			}
			if l != nil {
				t.Fatal("it compiles")
			}
			if len(found) == 0 || found[0].String() != c.want {
				t.Errorf("got\n%v\nwant\n%s", found, c.want)
			}
		})
	}
}

func TestWhatChangesNothingIsWarnedOf(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"an operation twice": {
			strings.Replace(fleet, "operations: [release]", "operations: [release, release]", 1),
			`lifecycle.yaml:25:27: warning: Ready: the state lists the operation "release" twice (take one of them out) [operation-duplicate]`},
		"a migration out of nowhere": {
			strings.Replace(fleet, "migrate: {Legacy: Retired}", `migrate: {"": Retired}`, 1),
			`lifecycle.yaml:34:11: warning: migrate: "" cannot be a state's name, so that this migrates no server (write the name of the former state, or take the line out) [migrate-name]`},
		"a migration out of a name with a blank": {
			strings.Replace(fleet, "migrate: {Legacy: Retired}", `migrate: {"Legacy ": Retired}`, 1),
			`lifecycle.yaml:34:11: warning: migrate: "Legacy " cannot be a state's name, so that this migrates no server (write the name of the former state, or take the line out) [migrate-name]`},
	} {
		t.Run(name, func(t *testing.T) {
			l, found, err := Compile("lifecycle.yaml", []byte(c.source), words())
			if err != nil || l == nil {
				t.Fatal(err, found)
			}
			if len(found) != 1 || found[0].String() != c.want {
				t.Errorf("got\n%v\nwant\n%s", found, c.want)
			}
		})
	}
}

func TestCompileReportsAllMistakesAtOnce(t *testing.T) {
	source := strings.NewReplacer("to: Ready, when: probed", "to: Readdy, when: warn", "initial: Inspect", "initial: Text").Replace(fleet)
	_, found, err := Compile("lifecycle.yaml", []byte(source), words())
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, d := range found {
		codes = append(codes, d.Code)
	}
	if got, want := strings.Join(codes, " "), "state-unknown state-unknown guard-unknown-atom"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add([]byte(fleet))
	f.Add([]byte("states: {A: {exits: [{rule: X, to: A, when: \"!(\"}]}}"))
	f.Add([]byte("define: {a: \"1 / 0 == 1\"}"))
	f.Fuzz(func(t *testing.T, source []byte) {
		l, found, err := Compile("lifecycle.yaml", source, words())
		if err != nil {
			t.Fatalf("an author's mistake was taken for one of the vocabulary: %v", err)
		}
		if l == nil && found.Err() == nil {
			t.Fatal("it does not compile and nothing says why")
		}
		if l != nil { // what compiles must decide without a panic
			for _, s := range l.States() {
				l.Decide(observed{words: l.vocabulary, facts: machine(string(s))})
			}
		}
	})
}
