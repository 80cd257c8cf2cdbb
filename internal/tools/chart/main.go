// SPDX-License-Identifier: Apache-2.0

// Command chart writes the templates of the Helm chart from the kustomizations in config. Run it in the folder config.
//
// Each object becomes one template. A setting of the chart is a place in an object: the program fails where the place does
// not hold what the kustomization is expected to say, so that a chart never drifts silently.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// part is one kustomization and when the chart renders its objects.
type part struct {
	folder string
	// when is a condition of a template; empty always renders.
	when string
}

var parts = []part{
	{folder: "default"},
	{folder: "prometheus", when: ".Values.monitoring.enabled"},
	{folder: "boot", when: ".Values.boot.enabled"},
	{folder: "fedhcp", when: ".Values.fedhcp.enabled"},
}

const header = "# Made from the kustomizations by `go generate ./config`; a change here is lost.\n"

func run(config string) error {
	templates, crds := filepath.Join(config, "chart", "templates"), filepath.Join(config, "chart", "crds")
	for _, dir := range []string{templates, crds} {
		if err := emptied(dir); err != nil {
			return err
		}
	}
	used := map[string]bool{}
	for _, p := range parts {
		objects, err := load(filepath.Join(config, p.folder))
		if err != nil {
			return err
		}
		for _, o := range objects {
			dir, text, err := render(p, o, used)
			if err != nil {
				return err
			}
			if text == nil {
				continue
			}
			target := filepath.Join(config, "chart", dir, o.fileName())
			if err := os.WriteFile(target, text, 0o644); err != nil { //nolint:gosec // a chart is for every reader
				return err
			}
		}
	}
	for _, s := range settings {
		if !used[s.object] {
			return fmt.Errorf("no kustomization has %s, for which the chart has settings", s.object)
		}
	}
	return nil
}

// emptied removes what a former run wrote, so that an object that is gone leaves no template.
func emptied(dir string) error {
	former, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range former {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(text, []byte(header)) {
			continue // written by hand
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o755) //nolint:gosec // a chart is for every reader
}

// render gives the folder in the chart and the text of one object.
func render(p part, o object, used map[string]bool) (dir string, text []byte, err error) {
	if o.kind() == "CustomResourceDefinition" {
		text, err := yaml.Marshal(map[string]any(o))
		return "crds", append([]byte(header), text...), err
	}
	var places []place
	when := p.when
	for _, s := range settings {
		if s.object != o.id() {
			continue
		}
		used[s.object] = true
		if s.when != "" {
			when = strings.TrimSpace(p.when + " " + s.when)
		}
		o.annotate(s.annotations)
		places = append(places, s.places...)
	}
	text, err = fill(o, places)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", o.id(), err)
	}
	var out bytes.Buffer
	out.WriteString(header)
	if when != "" {
		fmt.Fprintf(&out, "{{- if %s }}\n", when)
	}
	out.Write(text)
	if when != "" {
		out.WriteString("{{- end }}\n")
	}
	return "templates", out.Bytes(), nil
}

// fill marshals an object with template expressions at its places.
func fill(o object, places []place) ([]byte, error) {
	var marks []string
	for i, p := range places {
		mark := fmt.Sprintf("chart-setting-%d", i)
		if err := p.put(o, mark); err != nil {
			return nil, err
		}
		marks = append(marks, mark)
	}
	text, err := yaml.Marshal(map[string]any(o))
	if err != nil {
		return nil, err
	}
	// What the API takes as text, such as the placeholders of an alert, is no template.
	rendered := strings.ReplaceAll(string(text), "{{", `{{ "{{" }}`)
	for i, mark := range slices.Backward(marks) {
		rendered = places[i].replace(rendered, mark)
	}
	return []byte(rendered), nil
}
