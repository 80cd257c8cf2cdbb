// SPDX-License-Identifier: Apache-2.0

// Package objectonly finds the rules of an admission policy that need only the object, and writes them as CEL, in the form that a
// ValidatingAdmissionPolicy of Kubernetes evaluates. It translates a fragment of Rego, and says of every other rule why not:
//
//   - input.operation, input.kind, input.object, input.oldObject, input.user.name and input.user.groups; not input.facts, which
//     only metalaw knows;
//   - comparisons, not, names given by :=, object.get, in and some x in over what is certainly a list, keys of objects and elements
//     of sets, and the functions of Functions;
//   - helper rules, with default and else, and functions of the bundle, as long as they give one value.
//
// What is translated is exact: the CEL refuses an object where the Rego denies it, in the same words, and no other. What cannot be
// written so is left. Rego and CEL differ in what they make of a value of another kind (a number where a string is meant), so that
// the kinds of all values are known from the schema of the object, which the API server asks before it asks about admission.
//
// Two things are not held to that. Where the Rego fails metalaw refuses the object, and the CEL may pass it. And where the CEL fails
// it refuses nothing, which the failurePolicy Ignore has to see to; it does not where the Rego denies.
package objectonly
