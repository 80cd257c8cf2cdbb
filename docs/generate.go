// SPDX-License-Identifier: Apache-2.0

// Package docs is what users read. It holds no code but the way in which its generated pages are made: lifecycle.md and
// the pages in bundles/ and reference/.
package docs

//go:generate go run ./internal/gen
