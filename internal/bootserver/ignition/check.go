// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

const (
	// maxNodes bounds the values of a Butane text: the time that Butane takes grows with their square. A system with five hundred files
	// has about six thousand.
	maxNodes = 8192
	// maxMirror bounds the devices of a mirrored boot disk: Butane makes a partition table and a file system for each.
	maxMirror = 32
)

// check refuses a Butane text whose translation could take much more memory than the text. A text that is no YAML is left to Butane.
func check(text []byte) error {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil //nolint:nilerr // Butane says what is wrong
	}
	nodes := 0
	return walk(&document, &nodes)
}

func walk(node *yaml.Node, nodes *int) error {
	*nodes++
	if *nodes > maxNodes {
		return fmt.Errorf("the Butane text has more than %d values; split it, and merge the parts by ignition.config.merge", maxNodes)
	}
	if node.Kind == yaml.AliasNode {
		return fmt.Errorf("line %d of the Butane text uses the alias *%.40s, and aliases are refused, because a short text "+
			"could become a very large one; write the value again", node.Line, node.Value)
	}
	if devices := entry(entry(node, "mirror"), "devices"); devices != nil && len(devices.Content) > maxMirror {
		return errors.New("mirror.devices names more than 32 devices; name those of the boot disk alone")
	}
	for _, child := range node.Content {
		if err := walk(child, nodes); err != nil {
			return err
		}
	}
	return nil
}

// entry is the last value of a key of a mapping; nil where there is none.
func entry(node *yaml.Node, key string) (found *yaml.Node) {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			found = node.Content[i+1]
		}
	}
	return found
}
