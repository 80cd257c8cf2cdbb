// SPDX-License-Identifier: Apache-2.0

// Package rbac holds the rights of the manager, for programs that check them.
package rbac

import _ "embed"

// ClusterRole is what the manager may do in the whole cluster, as YAML.
//
//go:embed manager-clusterrole.yaml
var ClusterRole []byte

// Role is what the manager may do in its own namespace, as YAML.
//
//go:embed manager-role.yaml
var Role []byte
