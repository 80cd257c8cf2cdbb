// SPDX-License-Identifier: Apache-2.0

// Package config holds what is applied to a cluster. internal/tools/chart makes the Helm chart from the
// kustomizations: both install the same objects.
package config

//go:generate go run ../internal/tools/chart
