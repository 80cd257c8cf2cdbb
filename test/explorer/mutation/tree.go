// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// lifecycle is the tree of a lifecycle.yaml.
type lifecycle struct {
	root *yaml.Node
}

// parse reads a lifecycle without what it says of rules: a rule that a mutant drops must be missed for what it does, not
// because somebody speaks of it.
func parse(text []byte) (lifecycle, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return lifecycle{}, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return lifecycle{}, fmt.Errorf("a lifecycle is a mapping")
	}
	dropKey(document.Content[0], "says")
	return lifecycle{document.Content[0]}, nil
}

// field is the value of a key; nil where there is none.
func field(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func text(mapping *yaml.Node, key string) string {
	if n := field(mapping, key); n != nil {
		return n.Value
	}
	return ""
}

func dropKey(mapping *yaml.Node, key string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content = append(mapping.Content[:i:i], mapping.Content[i+2:]...)
			return
		}
	}
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

func list(values ...string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, v := range values {
		n.Content = append(n.Content, scalar(v))
	}
	return n
}

func setKey(mapping *yaml.Node, key string, value *yaml.Node) {
	mapping.Content = append(mapping.Content, scalar(key), value)
}

// named is one entry of a mapping, or one item of a list with a name for it.
type named struct {
	name string
	node *yaml.Node
}

func entries(mapping *yaml.Node) []named {
	var all []named
	if mapping == nil {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		all = append(all, named{mapping.Content[i].Value, mapping.Content[i+1]})
	}
	return all
}

func (l lifecycle) states() []named { return entries(field(l.root, "states")) }

// member is one item of a list, with what the list belongs to.
type member struct {
	name string
	list *yaml.Node
	at   int
}

func (m member) node() *yaml.Node { return m.list.Content[m.at] }

func members(owner string, l *yaml.Node, name func(*yaml.Node) string) []member {
	var all []member
	if l == nil {
		return nil
	}
	for i, n := range l.Content {
		all = append(all, member{owner + " " + name(n), l, i})
	}
	return all
}

func ruleOf(n *yaml.Node) string { return text(n, "rule") }

func effectOf(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return text(n, "do")
}

// exits are the interrupts and the exits of every state.
func (l lifecycle) exits() []member {
	all := members("interrupt", field(l.root, "interrupts"), ruleOf)
	for _, s := range l.states() {
		all = append(all, members(s.name, field(s.node, "exits"), ruleOf)...)
	}
	return all
}

func (l lifecycle) effects() []member {
	var all []member
	for _, s := range l.states() {
		all = append(all, members(s.name, field(s.node, "ensure"), effectOf)...)
	}
	return all
}
