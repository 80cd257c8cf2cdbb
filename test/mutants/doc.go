// SPDX-License-Identifier: Apache-2.0

// Package mutants changes the source of a safety rule in one place, and expects a named test to fail.
package mutants
