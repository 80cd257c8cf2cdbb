// SPDX-License-Identifier: Apache-2.0

// Package config holds what is applied to a cluster. Its code makes the Helm chart from the kustomizations, so that both
// install the same objects.
package config

//go:generate go run ./internal/chart
