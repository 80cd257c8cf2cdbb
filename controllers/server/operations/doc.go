// SPDX-License-Identifier: Apache-2.0

// Package operations decides what becomes of an operation that an annotation asks for. It does nothing itself.
//
// An operation goes through these steps, each one write, so that it happens at most once:
//
//  1. It is recorded in status.operation as Pending, while the annotation still stands.
//  2. The annotation is taken away.
//  3. Only now do the facts show it: a rule moves on it, or an effect records it as InProgress and carries it out.
//  4. It ends as Succeeded, Failed or Refused.
package operations
