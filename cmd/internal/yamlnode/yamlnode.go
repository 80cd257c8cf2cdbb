// SPDX-License-Identifier: Apache-2.0

// Package yamlnode looks things up in YAML that keeps its places.
package yamlnode

import "go.yaml.in/yaml/v3"

// Child is the value of a key of a mapping; nil where there is none, and where the node is nil or no mapping.
func Child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
