// SPDX-License-Identifier: Apache-2.0

// Package regosandbox compiles and evaluates the Rego of a policy bundle under one set of rules, which selection and
// admission share:
//
//   - Strict mode, types checked against a schema of the input, and only those built-in functions that are pure and
//     cheap. All else fails when the bundle is written, with line and column, and not while a fleet waits.
//   - An evaluation ends with a result or with an error. A built-in function that fails is an error, never undefined,
//     and a deadline always holds.
//   - Nothing is read but the input: there is no base document, no clock and no environment.
package regosandbox
