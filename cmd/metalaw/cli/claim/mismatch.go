// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mismatch is a value of another type than its field has.
type mismatch struct {
	// field is its path, and key the last step of that where it is one that the user has chosen, as in annotations.
	field, key string
	// is and wants are words for the types.
	is, wants string
	// place is where to look, and value what stands there; nil where that is not known.
	place, value *yaml.Node
}

// mismatchOf finds the value that a decoder stumbled over. In a map the decoder knows the field alone, and the key is looked for here.
func mismatchOf(n *yaml.Node, wrong *json.UnmarshalTypeError) mismatch {
	m := mismatch{field: wrong.Field, is: jsonWords(wrong.Value), wants: typeWords(wrong.Type.Kind()), place: node(n, wrong.Field)}
	m.value = valueOf(n, m.place)
	if m.wants == "string" && m.value != nil && m.value.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(m.value.Content); i += 2 {
			if key, value := m.value.Content[i], m.value.Content[i+1]; yamlWords(value) == m.is {
				m.key, m.field, m.place, m.value = key.Value, m.field+"["+key.Value+"]", key, value
				break
			}
		}
	}
	if m.value != nil && isBareBoolean(m.value) {
		m.place = m.value
	}
	return m
}

// words say what is wrong, and how to write it.
func (m *mismatch) words() string {
	if m.value != nil && isBareBoolean(m.value) {
		return fmt.Sprintf("%s is a bare %s, which kubectl takes for a boolean: write %q in quotes", m.field, m.value.Value, m.value.Value)
	}
	words := fmt.Sprintf("%s is a %s and has to be a %s", m.field, m.is, m.wants)
	switch {
	case m.wants != "string" || m.value == nil:
	case m.value.Kind == yaml.ScalarNode:
		words += fmt.Sprintf(": write %q in quotes", m.value.Value)
	case strings.HasPrefix(m.field, "metadata.annotations["):
		words += fmt.Sprintf(": write it as text, with a | behind the key (%s: |)", m.key)
	}
	return words
}

// jsonWords name a type as a decoder of JSON found it.
func jsonWords(kind string) string {
	switch kind {
	case "object":
		return "mapping"
	case "array":
		return "list"
	case "bool":
		return "boolean"
	default:
		return kind
	}
}

// yamlWords name the type of a value as kubectl reads it.
func yamlWords(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.MappingNode:
		return "mapping"
	case n.Kind == yaml.SequenceNode:
		return "list"
	case tag == "!!bool" || isBareBoolean(n):
		return "boolean"
	case tag == "!!int" || tag == "!!float":
		return "number"
	default:
		return "string"
	}
}

// typeWords name the type that a field has.
func typeWords(kind reflect.Kind) string {
	switch kind {
	case reflect.Struct, reflect.Map:
		return "mapping"
	case reflect.Slice:
		return "list"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return "number"
	default:
		return kind.String()
	}
}

// valueOf is the value of the key at a place in a document; the place itself where it is no key.
func valueOf(n, place *yaml.Node) *yaml.Node {
	if n == nil || n == place {
		return place
	}
	for i, child := range n.Content {
		if child == place && n.Kind == yaml.MappingNode && i%2 == 0 && i+1 < len(n.Content) {
			return n.Content[i+1]
		}
		if found := valueOf(child, place); found != nil {
			return found
		}
	}
	return nil
}

// bareBooleans are the words that kubectl, which reads YAML 1.1, takes for booleans where they stand without quotes.
var bareBooleans = regexp.MustCompile(`^(y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF)$`)

func isBareBoolean(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0 && bareBooleans.MatchString(n.Value)
}
