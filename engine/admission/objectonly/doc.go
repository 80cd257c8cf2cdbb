// SPDX-License-Identifier: Apache-2.0

// Package objectonly finds the rules of an admission policy that need only the object, and writes them as CEL, in the form that a
// ValidatingAdmissionPolicy of Kubernetes evaluates. It translates a fragment of Rego, and says of every other rule why not:
//
//   - input.operation, input.kind, input.object, input.oldObject, input.user.name and input.user.groups; not input.facts, which
//     only metalaw knows;
//   - comparisons, not, names given by :=, object.get, in and some x in over what is certainly a list, and the functions of
//     Functions;
//   - helper rules, with default and else, and functions of the bundle, as long as they give one value.
//
// What is translated is sound: where the CEL refuses an object, the Rego denies it or fails, and metalaw refuses it in both cases.
// An expression that fails in CEL refuses nothing, which the failurePolicy Ignore has to see to.
package objectonly
