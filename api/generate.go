// SPDX-License-Identifier: Apache-2.0

// Package api is the home of the API groups; it holds nothing but the way in which their generated files are made.
//
// Run `go generate ./api` after a change of a type; it writes the zz_generated.deepcopy.go files beside the types, and
// the CustomResourceDefinitions in config/crd/bases.
package api

//go:generate go tool -modfile=../test/tools/go.mod controller-gen object paths=./...
//go:generate go tool -modfile=../test/tools/go.mod controller-gen crd paths=./... output:crd:dir=../config/crd/bases
