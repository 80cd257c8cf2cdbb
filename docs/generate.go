// SPDX-License-Identifier: Apache-2.0

// Package docs is what users read. Its code makes the generated pages, which are lifecycle.md and those in bundles/ and
// reference/, and measures the sentences of all pages.
package docs

//go:generate go run ./internal/gen
