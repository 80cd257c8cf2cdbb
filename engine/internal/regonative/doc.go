// SPDX-License-Identifier: Apache-2.0

// Package regonative evaluates compiled Rego over Go structs, without OPA's interpreter. It covers the part of the language
// in which rules about one object are mostly written: comparisons, arithmetic, not, rules with default and else, functions,
// constants, look-ups, membership, loops over what the input lists, and every built-in function that a policy may call.
//
// Three things can come of an evaluation. A rule is defined, with a value; it is undefined; or the evaluation gives up. It
// gives up wherever the interpreter would end with an error or could do so, and wherever a limit is passed: then the
// interpreter has to be asked, which knows the words. What it does not give up it decides exactly as the interpreter does.
// Integers and strings are compared and computed in Go; for all else OPA's own functions are called.
//
// The work of an evaluation is bounded by the size of the rules and of the input: Rego has no recursion, the calls that
// functions can make are counted when rules are translated, and the turns of loops while they run.
package regonative
