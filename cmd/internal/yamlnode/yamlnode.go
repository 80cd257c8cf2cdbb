// SPDX-License-Identifier: Apache-2.0

// Package yamlnode looks things up in YAML that keeps its places.
package yamlnode

import "go.yaml.in/yaml/v3"

// Child is the value of a key of a mapping; nil where there is none, and where the node is nil or no mapping.
func Child(n *yaml.Node, key string) *yaml.Node {
	_, value := Field(n, key)
	return value
}

// Field is a key of a mapping with its value; both are nil where Child is.
func Field(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}
