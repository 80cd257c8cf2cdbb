// SPDX-License-Identifier: Apache-2.0

package diag

import "slices"

// lifecycleCodes are those of the lifecycle, of what is proven and shown of it, and of the Rego beside it.
var lifecycleCodes = []Group{
	{Title: "Lifecycle", About: "About states, rules, guards and effects in lifecycle.yaml.", Codes: slices.Concat(table(Error, `
after-range
	The duration of after: is shorter than a second, or longer than can be counted with.
	Write a duration of 1s or more, or ask with when: for what the rule waits for; a state in which servers may wait for ever is stable: true.
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
initial-guarded
	The lifecycle begins in a state for which a safety rule says what has to hold to enter it.
	Begin in another state, such as Initial, and let a rule of that lead there.
initial-missing
	The lifecycle does not say in which state a new server starts.
	Add initial:.
invariant-form
	An invariant has no name or no condition.
	Write {rule: Name, must: condition}.
mark-duplicate
	A state sets the same mark twice.
	Take one of them out.
mark-earned
	A state sets a mark that a machine must earn: entering a state proves nothing about it.
	Take it out; the engine sets it with an effect that earns it.
mark-kept
	A state sets, or a rule clears, a mark that the engine keeps by itself.
	Take it out; it comes and goes with what the engine sees of the machine.
mark-name
	A mark has a name that could not be stored with a server, or that diagrams, scenarios and YAML readers would misread.
	Write one word in upper camel case with at most 63 letters and digits, for example BurntIn.
mark-too-many
	A lifecycle has more marks of its own than a server could store beside those of the engine.
	Take out those that no rule asks for.
means-missing
	A state does not say what it means.
	Write one sentence under means:, which becomes the message of the server's condition.
migrate-needless
	A migration leads out of a state that still exists.
	Take the line out.
operation-unknown
	A state accepts an operation that does not exist.
	Correct its spelling; the finding lists what there is.
param-contradiction
	Two parameters of an effect say the opposite of each other.
	Do as the finding says with one of them.
param-range
	A parameter of an effect is larger than makes sense.
	Write it within the bounds that the finding names.
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
state-name
	A state has a name that could not be stored with a server, or that diagrams, scenarios and YAML readers would misread.
	Write one word in upper camel case with at most 63 letters and digits, for example BurnIn.
state-unknown
	There is no state of this name.
	Take the one that the finding suggests, or define it under states.
states-missing
	The lifecycle has no states.
	Add states:.
`), table(Warning, `
effect-duplicate
	A state ensures the same effect twice, with the same parameters and on the same condition.
	Take one of them out.
migrate-name
	A migration leads out of a name that no state can have.
	Write the name of the former state, or take the line out.
operation-duplicate
	A state lists the same operation twice.
	Take one of them out.
`))},
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
	The state is always left before the deadline: another exit without a guard is sooner; a warning where servers rest or are given up all the same.
	Shorten the deadline, or give the other exit a guard.
retries-never-grow
	A guard asks how often something was tried, and no rule on the way there counts it: the answer is always 0.
	Add retry: true to the rule that tries again; a stable state on the way begins the count anew.
operation-destination
	A rule that serves an operation leads to another state than the one that the operation is for, and that one is known by its name.
	Give the state the name that the finding says, or lead the rule there.
operation-unlisted
	A rule fires only for an operation that the state does not accept, so that nobody can have it done there.
	Write the operation under operations: in the state, or remove the rule.
verify-undecided
	The lifecycle is too large or too involved to be proven.
	Let guards ask for fewer facts at once.
`), table(Warning, `
operation-idle
	A state accepts an operation that none of its rules and effects serves: it would be pending until the server moves.
	Add a rule or an effect that serves it, or take it out of operations:.
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
migrate-unguarded
	Servers of a dropped state migrate to one of which a safety rule says when a rule may lead there; migrations are not held to that.
	Leave it where the state that was dropped was such a state too; else migrate to another one, such as Initial.
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
	{Title: "Rego", About: "About selection.rego, admission.rego and their tests.", Codes: slices.Concat(table(Error, `
rego-bound
	A call would make or read more than one call, or one evaluation, may; it is not made, and the evaluation has no result.
	Let a rule look at less at a time: texts are names and sentences, and numbers have few digits.
rego-compile
	The Rego does not compile, for the reason that the finding gives.
	Correct the rule; strict mode refuses what is not used.
rego-cost
	An evaluation takes more steps than a claim or a request may cost, with as many labels, taints and annotations as real ones have.
	Look at fewer combinations, avoid loops within loops, and compare with ==.
rego-entrypoint
	A rule that metalaw asks for is missing or has another form, or a message of it has: in the text of the rule, or in what a test saw of it.
	Write it like the example in the finding; a code is lower-case letters, digits and dashes, and a message is a text.
rego-evaluation
	An evaluation of plain input has no result.
	Let a rule have one value for an input, and call functions with values of the right kind.
rego-forbidden-builtin
	A built-in function is not available to policies, because a decision must depend on its input alone.
	Decide on what the input holds; the finding says why this function is not there.
rego-limit
	The Rego is larger, or nested deeper, than metalaw compiles; or it has more mistakes than are shown.
	Do as the finding says: split the file or the rule, give a part of an expression a name, or mend what is shown first.
rego-package
	Nothing evaluates a package of this name.
	Use one of the packages that the finding lists.
rego-parse
	The text cannot be read as Rego.
	Correct it where the finding points or right before; a bracket or a comma may be missing.
rego-pattern
	A pattern of regex.match or glob.match that is written out cannot be read: every evaluation that came to it would fail.
	Correct it where the finding points.
rego-test-failed
	A test does not hold, ends with an error, or is switched off.
	Correct the rule or the test.
rego-test-limit
	There are more tests, or the tests together do more, than metalaw runs; the finding names the one at which it stopped.
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
rego-input-whole
	A rule deny of admission hands the whole input on so that nobody knows what it reads, and is asked at admission alone.
	Hand on input.object, or what of it the rule needs; it is then asked again before a claim gets a server.
`), table(Info, `
rego-admission-only
	A rule deny of admission reads who asks, the former object or the facts, which are not known later; it is asked at admission alone.
	Nothing, if that is enough; else refuse what the claim itself says in a rule of its own.
`))},
}
