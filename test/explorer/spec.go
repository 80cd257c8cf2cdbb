// SPDX-License-Identifier: Apache-2.0

package explorer

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// document is lifecycle.yaml, as far as it matters for what a server does. Invariants are left out: they only ever stop
// what the rest of the bundle asks for.
type document struct {
	APIVersion string               `yaml:"apiVersion"`
	Kind       string               `yaml:"kind"`
	Initial    string               `yaml:"initial"`
	Define     orderedMap[string]   `yaml:"define"`
	Interrupts []exitText           `yaml:"interrupts"`
	States     orderedMap[stateDoc] `yaml:"states"`
	Says       map[string]string    `yaml:"says"`
	Invariants []map[string]string  `yaml:"invariants"`
	Migrate    map[string]string    `yaml:"migrate"`
}

type stateDoc struct {
	Means      string       `yaml:"means"`
	Stable     bool         `yaml:"stable"`
	Marks      []string     `yaml:"marks"`
	Operations []string     `yaml:"operations"`
	Ensure     []ensureText `yaml:"ensure"`
	Exits      []exitText   `yaml:"exits"`
}

type exitText struct {
	Rule   string   `yaml:"rule"`
	To     string   `yaml:"to"`
	When   string   `yaml:"when"`
	After  string   `yaml:"after"`
	Retry  bool     `yaml:"retry"`
	Clears []string `yaml:"clears"`
	Except []string `yaml:"except"`
}

type ensureText struct {
	Do   string         `yaml:"do"`
	When string         `yaml:"when"`
	With map[string]any `yaml:"with"`
}

// UnmarshalYAML reads both forms of an effect: its name alone, and a mapping.
func (e *ensureText) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&e.Do)
	}
	type plain ensureText
	return n.Decode((*plain)(e))
}

// orderedMap is a mapping in the order in which it is written.
type orderedMap[T any] []named[T]

type named[T any] struct {
	name  string
	value T
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (m *orderedMap[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a mapping is needed", n.Line)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		entry := named[T]{name: n.Content[i].Value}
		if err := n.Content[i+1].Decode(&entry.value); err != nil {
			return err
		}
		*m = append(*m, entry)
	}
	return nil
}

// settings are those of bundle.yaml that change what is right.
type settings struct {
	Settings struct {
		Sanitization string `yaml:"sanitization"`
		FirstSeen    string `yaml:"firstSeen"`
		ReleaseGrace string `yaml:"releaseGrace"`
		ReleasePower string `yaml:"releasePower"`
	} `yaml:"settings"`
}

func parse(files map[string][]byte) (document, settings, error) {
	var d document
	var s settings
	decoder := yaml.NewDecoder(bytes.NewReader(files["lifecycle.yaml"]))
	decoder.KnownFields(true)
	if err := decoder.Decode(&d); err != nil {
		return d, s, fmt.Errorf("lifecycle.yaml: %w", err)
	}
	if err := yaml.Unmarshal(files["bundle.yaml"], &s); err != nil {
		return d, s, fmt.Errorf("bundle.yaml: %w", err)
	}
	return d, s, nil
}
