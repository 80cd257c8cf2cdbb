// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// object is one object of the API.
type object map[string]any

func (o object) kind() string { return fmt.Sprint(o["kind"]) }

func (o object) name() string {
	metadata, _ := o["metadata"].(map[string]any)
	return fmt.Sprint(metadata["name"])
}

// id is kind/name.
func (o object) id() string { return o.kind() + "/" + o.name() }

func (o object) fileName() string {
	return strings.ToLower(o.kind()) + "-" + strings.ReplaceAll(o.name(), ".", "-") + ".yaml"
}

// label adds labels, as the field labels of a kustomization does.
func (o object) label(pairs map[string]string) { o.add("labels", pairs) }

func (o object) annotate(pairs map[string]string) { o.add("annotations", pairs) }

// add puts pairs into a map of the object's metadata.
func (o object) add(field string, pairs map[string]string) {
	if len(pairs) == 0 {
		return
	}
	metadata, _ := o["metadata"].(map[string]any)
	all, _ := metadata[field].(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range pairs {
		all[key] = value
	}
	metadata[field] = all
}

// kustomization is what the kustomizations in config use of that format.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Labels     []struct {
		Pairs            map[string]string `json:"pairs"`
		IncludeSelectors bool              `json:"includeSelectors"`
	} `json:"labels"`
	// Images name the tag that the Deployment names as well.
	Images []map[string]string `json:"images"`
}

// load reads a kustomization and all that it names.
func load(dir string) ([]object, error) {
	file := filepath.Join(dir, "kustomization.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var k kustomization
	if err := yaml.UnmarshalStrict(text, &k); err != nil {
		return nil, fmt.Errorf("%s: the chart cannot follow it: %w", file, err)
	}
	var all []object
	for _, resource := range k.Resources {
		target := filepath.Join(dir, resource)
		read := loadFile
		if info, err := os.Stat(target); err != nil {
			return nil, err
		} else if info.IsDir() {
			read = load
		}
		objects, err := read(target)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	for _, o := range all {
		for _, l := range k.Labels {
			o.label(l.Pairs)
		}
	}
	return all, nil
}

// loadFile reads the objects of one file.
func loadFile(file string) ([]object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []object
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	for {
		var o object
		err := decoder.Decode((*map[string]any)(&o))
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
}
