// SPDX-License-Identifier: Apache-2.0

package diag

import "slices"

// groups documents every code. Three lines are the code, what is wrong, and what to do
// about it. A test fails where a code is used that is not here, or is here and is not used.
var groups = []Group{
	{Title: "The bundle", About: "About bundle.yaml, and about the files together.", Codes: append(table(Error, `
bundle-name
	The bundle has no name, or one that no object can have.
	Name it with lower-case letters, digits, dashes and dots, at most 42.
bundle-version
	The bundle has no version.
	Add version:, a semantic version such as 1.0.0.
version-form
	A version is not a semantic version, has more than 64 characters, or is one of which no name of a PolicyRevision can be made.
	Write three numbers, such as 1.2.0, and begin and end what follows each dot with a letter or a digit.
label-stage
	The label policy.metalaw.dev/stage of a bundle's ConfigMap says a stage that there is not.
	Write draft, shadow, canary or active.
label-bundle
	The label policy.metalaw.dev/bundle of a bundle's ConfigMap is not the name in bundle.yaml.
	Write the same name in both.
canary-scope
	The annotations of a canary do not say whom it governs.
	Write policy.metalaw.dev/servers, a label selector, or policy.metalaw.dev/percent, 1 to 100.
engine-too-old
	The bundle asks for a newer engine; nothing else of it is judged, because its forms may be newer as well.
	Upgrade metalaw, or lower minEngineVersion if the bundle uses nothing newer.
file-encoding
	A file is no UTF-8 text, such as UTF-16 or Latin-1; nothing else of the bundle is judged.
	Save it as UTF-8.
file-missing
	A file that a bundle must have is not there and could not be filled in.
	Write it, or start from a shipped bundle.
file-unknown
	Nothing reads a file of this name.
	Correct the name, or take the file out.
scenarios-missing
	The bundle has a lifecycle of its own, and no scenarios that show what it decides.
	Write scenarios.yaml with at least one scenario for each rule.
setting-word
	A setting holds a word that it does not have.
	Write one of the words that the finding names.
setting-number
	A setting is not a whole number, or is out of its bounds; a bundle may ask for more coverage than the floor and never for less.
	Write a number within the bounds that the finding names.
setting-duration
	A setting is not a duration.
	Write numbers with units, such as 24h.
manifest-part
	A file that manifest.yaml lists lacks its name, its ConfigMap or its digest.
	Give it name, configMap and digest.
manifest-name
	A file in manifest.yaml has a name that no file can have, or its ConfigMap one that no ConfigMap can have, or that of the head.
	Correct the name; a file of the head is not listed.
manifest-digest
	A digest in manifest.yaml is none.
	Write sha256: and 64 lower-case hexadecimal digits, as sha256sum prints them.
manifest-twice
	A file is in the head and listed in manifest.yaml, or listed twice.
	Keep it in one place.
manifest-empty
	The manifest lists no file.
	List files, or leave manifest.yaml out.
manifest-part-missing
	A ConfigMap does not hold a file that manifest.yaml lists; until it does, nothing of the bundle is compiled.
	Apply it, in the same namespace and with the label policy.metalaw.dev/bundle-part.
manifest-part-differs
	A file is not of the digest that manifest.yaml lists; until it is, nothing of the bundle is compiled.
	Apply the parts and the head of the same version.
limit-file-size
	A file is larger than metalaw reads; none of it is looked at.
	Take out what nothing reads; what differs between servers belongs into their labels.
limit-bundle-size
	The files together, or packed, are larger than a PolicyRevision holds.
	Take out what nothing reads.
limit-lifecycle
	The lifecycle has more states or rules than metalaw evaluates.
	Tell servers apart by facts and guards, not by one state for each kind of server.
limit-scenarios
	There are more scenarios than metalaw runs.
	Keep those that show something that no other shows.
`), table(Warning, `
bundle-name-built-in
	The bundle has the name of the one that is built into metalaw, and becomes another version of it, with the same right to activate.
	Take a name of your own.
`)...)},
	{Title: "YAML", About: "About the form of any YAML file but macprefixes.yaml.", Codes: table(Error, `
yaml-alias
	An alias or a merge key repeats what is written elsewhere, so that a finding would have two places.
	Write the value out.
yaml-api-version
	The file has another apiVersion than its kind.
	Write the apiVersion that the finding names.
yaml-bare-boolean
	A bare On, Off, Yes or No stands where a word belongs; some YAML readers take it for a boolean.
	Put the word in quotes.
yaml-character
	A byte is no UTF-8 text, a control character stands in the file, or the indentation holds a space of another kind.
	Type the line anew, or save the file as UTF-8.
yaml-documents
	The file holds more than one YAML document.
	Keep one document per file.
yaml-duplicate-key
	A mapping has the same key twice.
	Keep one of the two.
yaml-empty
	The file is empty.
	Write it, or leave its key out so that it is filled from the default.
yaml-kind
	The file is of another kind than its name says.
	Write the kind that the finding names; perhaps two files were exchanged.
yaml-missing-key
	A key that the file must have is not there.
	Add it.
yaml-quote
	A value begins with a quote and goes on behind the quote that ends it.
	Write marked("Dirty") instead of "Dirty" in lifecycle.marks, or put the whole value in single quotes.
yaml-syntax
	The text cannot be read as YAML.
	Check indentation, brackets and quotes where the finding points and in the line before.
yaml-tab
	A tab is used for indentation.
	Use spaces.
yaml-tag
	A value carries a tag, or begins with an exclamation mark, which YAML takes for one.
	Put the whole value in double quotes.
yaml-type
	A list, a mapping or a single value stands where another of them belongs.
	Write what the finding asks for.
yaml-unknown-key
	A key means nothing here.
	Correct its spelling; the finding lists the keys that are known.
`)},
	{Title: "Definitions and conditions", About: "About the CEL expressions in lifecycle.yaml and in the placement of a claim.", Codes: table(Error, `
cel-age
	A fact that changes with time alone is compared with something that is no duration literal, so that the moment of the change cannot be told.
	Write lifecycle.age >= duration("5m").
cel-comprehension
	An expression looks at many values; there are no comprehensions, so that its cost is bounded.
	In a definition use marked("Dirty") for a mark, and in for other words; in a placement use in for labels.
cel-cost
	An expression, or all of a placement together, may cost more than a decision should take.
	Compare with ==, in or startsWith; avoid patterns, functions within functions, and joined texts.
cel-empty
	An expression is empty.
	Write an expression that yields true or false.
cel-enum
	A fact is compared with a word that it never has.
	Write one of the words that the finding lists.
cel-invalid
	CEL refuses the expression for the reason that the finding gives.
	Correct the expression; the reference page shows types.
cel-literal
	A duration, moment or pattern is written in a form that cannot be read.
	Write it as the finding shows.
cel-not-bool
	An expression yields something else than true or false.
	Compare it with something.
cel-program
	An expression cannot be prepared for evaluation.
	Write it more simply.
cel-syntax
	An expression cannot be read from the place that the finding names.
	Correct it there; strings stand in double quotes, and == compares.
cel-too-long
	An expression is longer or deeper than anybody can read.
	Split it into several definitions, or say less.
cel-type
	Values of two types are combined that do not go together.
	Let both sides have the same type.
cel-unknown-fact
	There is no fact of this name.
	Take the one that the finding suggests, or see the reference page that it names.
cel-unknown-function
	There is no function of this name.
	See the reference page that the finding names for what an expression may use.
define-name
	No guard could ask for a definition of this name, because it is no identifier or a word of CEL.
	Write letters and digits only, for example poweredOff.
define-too-many
	There are more definitions than a decision keeps values of.
	Take out those that no guard uses.
mark-unknown
	A mark is asked for, cleared or given that nothing ever sets.
	Correct its spelling.
`)},
	placementCodes,
	{Title: "Lifecycle", About: "About states, rules, guards and effects in lifecycle.yaml.", Codes: table(Error, `
after-range
	The duration of after: is not above zero.
	Write a duration above zero.
after-type
	What after: says is neither a duration nor the name of a duration fact.
	Write a duration such as 15m, or a fact such as wipe.budget.
deadline-missing
	A server could wait in the state for ever: it is not stable, and no exit by time is without a guard.
	Add an exit with after: and no when:, or mark the state stable: true.
effect-unknown
	There is no effect of this name.
	Take the one that the finding suggests, or see the reference page of effects.
exit-nowhere
	A rule says no state to move to.
	Add to: with a state.
exit-unguarded
	A rule has neither when: nor after:, so that it would fire at once and every time.
	Add one of them.
guard-form
	A guard holds something else than defined names combined with &&, || and !.
	Give the comparison a name under define, and use that name.
guard-raw-fact
	A guard reads a fact itself.
	Give the fact a name under define, and use that name.
guard-unknown-atom
	A guard uses a name that is not defined.
	Take the one that the finding suggests, or define it.
guard-unknown-effect
	An invariant asks for an effect that does not exist.
	See the reference page of effects.
guard-unknown-state
	An invariant asks for a state that does not exist.
	Name a state of this lifecycle.
initial-missing
	The lifecycle does not say in which state a new server starts.
	Add initial:.
invariant-form
	An invariant has no name or no condition.
	Write {rule: Name, must: condition}.
mark-earned
	A state sets a mark that a machine must earn: entering a state proves nothing about it.
	Take it out; the engine sets it with an effect that earns it.
mark-kept
	A state sets, or a rule clears, a mark that the engine keeps by itself.
	Take it out; it comes and goes with what the engine sees of the machine.
means-missing
	A state does not say what it means.
	Write one sentence under means:, which becomes the message of the server's condition.
migrate-needless
	A migration leads out of a state that still exists.
	Take the line out.
operation-unknown
	A state accepts an operation that does not exist.
	Correct its spelling; the finding lists what there is.
param-type
	The parameter of an effect is not of its type.
	Write it as the finding shows.
param-unknown
	An effect has no parameter of this name.
	See the reference page of effects.
rule-duplicate
	Two rules have the same name, which is a metric label and the reason of a condition.
	Rename one of them.
rule-name
	A name cannot be that of a rule, because it has to serve as a condition's reason.
	Write one word in upper camel case, such as ProbeReported.
rule-unknown
	Something is said of a rule that does not exist.
	Name the rule of an exit or of an interrupt.
state-unknown
	There is no state of this name.
	Take the one that the finding suggests, or define it under states.
states-missing
	The lifecycle has no states.
	Add states:.
`)},
	{Title: "Verification", About: "About the lifecycle as a whole, proven over all facts that can occur.", Codes: slices.Concat(table(Error, `
safety-effect
	An effect can be wanted where a safety rule forbids it: the server would be halted there.
	Guard the effect with when:, or add an exit before it that takes these servers elsewhere.
safety-move
	A rule can fire where a safety rule forbids to enter its target or to clear a mark: the server would be halted there.
	Add to the rule's guard what the safety rule asks for.
safety-stay
	A server can stay where a safety rule forbids it because of an effect that its state has, wanted or not: it would be halted there.
	Add an exit that takes these servers elsewhere.
invariant-violated
	Facts exist by which an invariant of the bundle does not hold.
	Correct the state that the example shows, or the invariant.
state-unreachable
	No rule that can fire leads to the state; a warning where servers are adopted into it from another operator.
	Add a rule that leads there, or take the state out.
state-dead-end
	No rule that can fire leads out of the state, or none of the ways out of a state that is not stable leads to a stable one.
	Add an exit that can fire.
rule-never-fires
	No facts make the rule fire: its guard is never true, or earlier rules always fire instead.
	Correct the guard, move the rule before the one that hides it, or take it out.
livelock
	Moves lead round and round while nothing outside changes and no time passes, or nobody could show that they do not.
	Let one of the rules ask for something that changes on the way.
exit-to-itself
	An exit leads to its own state: where it is taken nothing moves, and nothing is ensured either.
	Take the exit out, or lead it elsewhere.
effects-quarrel
	A state can want two effects at once that undo each other: it would never rest.
	Let their guards exclude each other.
deadline-too-late
	The state is always left before the deadline: another exit without a guard has a shorter one; a warning where servers rest all the same.
	Shorten the deadline, or give the other exit a guard.
retries-never-grow
	A guard asks how often something was tried, and no rule on the way there counts it: the answer is always 0.
	Add retry: true to the rule that tries again; a stable state on the way begins the count anew.
operation-destination
	A rule that serves an operation leads to another state than the one that the operation is for, and that one is known by its name.
	Give the state the name that the finding says, or lead the rule there.
verify-undecided
	The lifecycle is too large or too involved to be proven.
	Let guards ask for fewer facts at once.
`), table(Warning, `
guard-always-true
	The guard is true whenever it is asked: what comes after it is never reached, or the guard can be left out.
	Leave the guard out, or correct it.
guard-error
	Facts exist by which a guard is an error, such as a division by zero: the server would be halted there.
	Exclude these facts before the expression that fails.
effect-never-ensured
	No facts make the state want the effect.
	Correct the effect's guard, or take it out.
definition-unused
	No guard uses the definition.
	Use it, or take it out.
mark-given-up
	A rule clears a mark that nothing forbids to clear, and something is lost by it.
	Take the mark out of clears:, unless the finding says what you want.
`), table(Info, `
order-decides
	Two exits of a state to different targets can hold at once; the first is taken.
	Nothing, if that is what you want; else let the guards exclude each other.
verify-not-proven
	Verification could not see into an expression, or left something out: that nothing was found there proves nothing.
	Compare facts with literals; leave arithmetic and functions on words out of definitions.
`))},
	{Title: "Scenarios and coverage", About: "About scenarios.yaml, and about what scenarios and tests leave unproven.", Codes: table(Error, `
scenario-cause
	A scenario expects a halt for a cause that does not exist.
	Write one of the causes that the finding lists.
scenario-duplicate
	Two scenarios have the same name.
	Say in the name what is different.
scenario-failed
	The lifecycle decides something else than the scenario expects; the finding says what, and which guards decided.
	Correct the lifecycle, or what the scenario gives or expects.
scenario-form
	A scenario lacks a name, a state or an expectation, or expects what cannot be together.
	Write it as the finding shows.
scenario-type
	A scenario gives a fact a value of another type.
	Write a value of the type that the finding names.
scenario-unknown-fact
	A scenario gives a fact that does not exist.
	Take the one that the finding suggests, or see the reference page of facts.
coverage-rule
	No scenario moves by a rule of the lifecycle.
	Add a scenario that expects the move.
coverage-effects
	Scenarios show fewer effects than the bundle itself asks for.
	Add scenarios that expect stays: true with ensures:.
coverage-rego
	Tests evaluate fewer lines of a Rego file than the floor.
	Add tests that evaluate the lines that the finding lists.
coverage-rego-rule
	No test evaluates a rule.
	Add a test in which it holds.
`)},
	{Title: "Rego", About: "About selection.rego, admission.rego and their tests.", Codes: append(table(Error, `
rego-compile
	The Rego does not compile, for the reason that the finding gives.
	Correct the rule; strict mode refuses what is not used.
rego-cost
	An evaluation takes more steps than a claim or a request may cost.
	Look at fewer combinations, avoid loops within loops, and compare with ==.
rego-entrypoint
	A rule that metalaw asks for is missing or has another form.
	Write it like the example in the finding.
rego-evaluation
	An evaluation of plain input has no result.
	Let a rule have one value for an input, and call functions with values of the right kind.
rego-forbidden-builtin
	A built-in function is not available to policies, because a decision must depend on its input alone.
	Decide on what the input holds; the finding says why this function is not there.
rego-limit
	The Rego of the bundle is larger than metalaw reads.
	Shorten it.
rego-package
	Nothing evaluates a package of this name.
	Use one of the packages that the finding lists.
rego-parse
	The text cannot be read as Rego.
	Correct it where the finding points or right before; a bracket or a comma may be missing.
rego-test-failed
	A test does not hold, ends with an error, or is switched off.
	Correct the rule or the test.
rego-test-limit
	The tests do more than metalaw runs.
	Let a test look at less; a rule that it calls may run away.
rego-type
	Types do not fit, a field of the input does not exist, or a function does not.
	Take a field or function that exists; the finding lists them.
rego-unknown-data
	A reference names a rule that nobody defines.
	Correct it; a policy reads its input and the rules of its bundle only.
`), table(Warning, `
rego-unused-rule
	Neither metalaw nor any other rule asks for the rule, so that it changes nothing.
	Correct its name, use it, or take it out.
rego-interpreted
	Selection has a rule that is interpreted for each server, which takes about a thousand times as long as the rules that are not.
	Write the rule as the finding says, or leave it: on a small fleet nobody notices.
`)...)},
	macPrefixCodes,
}
