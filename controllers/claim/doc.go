// SPDX-License-Identifier: Apache-2.0

// Package claim runs ServerClaims: it holds them by their finalizer before anything is bound, says in their conditions how
// far they are, and records their end on their server. Which server a claim gets is the scheduler's; what becomes of the
// server is its lifecycle's.
package claim
