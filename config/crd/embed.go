// SPDX-License-Identifier: Apache-2.0

// Package crd holds the CustomResourceDefinitions, for programs and tests that install them.
package crd

import "embed"

// FS holds every CustomResourceDefinition as one YAML file under bases.
//
//go:embed bases/*.yaml
var FS embed.FS
