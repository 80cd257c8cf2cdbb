// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// maxFile bounds what is read of one file.
const maxFile = 16 << 20

// documents are what files hold.
type documents struct {
	all []v1alpha1.ServerMaintenance
	// others are the kinds of objects that are no maintenances.
	others []string
}

// readFiles reads the maintenances of files; one without a namespace gets the given one. Two of one name make no sense.
func readFiles(ctx context.Context, in io.Reader, paths []string, namespace string) (*documents, error) {
	d := &documents{}
	for _, path := range paths {
		text, err := terminal.Read(ctx, path, in, maxFile)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the file cannot be read: %w", err)
		case len(text) > maxFile:
			return nil, fmt.Errorf("%s has more than %d MiB; divide it", path, maxFile>>20)
		}
		if err := d.decode(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	seen := map[string]bool{}
	for i := range d.all {
		m := &d.all[i]
		if m.Namespace == "" {
			m.Namespace = namespace
		}
		if m.Name == "" && m.GenerateName != "" {
			m.Name = fmt.Sprintf("%s%d", m.GenerateName, i+1)
		}
		switch name := nameOf(m); {
		case m.Name == "" || m.Spec.ServerRef.Name == "":
			return nil, usage.Errorf("maintenance %d of the files has no name or no spec.serverRef", i+1)
		case seen[name]:
			return nil, usage.Errorf("maintenance %s is there twice; give one of them another name", name)
		default:
			seen[name] = true
		}
	}
	if len(paths) > 0 && len(d.all) == 0 {
		return nil, errors.New("the files hold no ServerMaintenance")
	}
	return d, nil
}

// decode reads the YAML documents of a text, strictly.
func (d *documents) decode(text []byte) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		one, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		object, err := yaml.YAMLToJSONStrict(one)
		if err != nil {
			return err
		}
		if err := d.add(object); err != nil {
			return err
		}
	}
}

// add takes in one object as JSON, or each of a list.
func (d *documents) add(object []byte) error {
	var head struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}
	if string(object) == "null" {
		return nil
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return err
	}
	switch head.Kind {
	case "List", "ServerMaintenanceList":
		for _, item := range head.Items {
			if err := d.add(item); err != nil {
				return err
			}
		}
		return nil
	case "ServerMaintenance":
		if head.APIVersion != v1alpha1.GroupVersion.String() {
			return fmt.Errorf("a ServerMaintenance has apiVersion %q; write %s", head.APIVersion, v1alpha1.GroupVersion)
		}
	default:
		if !slices.Contains(d.others, head.Kind) {
			d.others = append(d.others, head.Kind)
		}
		return nil
	}
	m := v1alpha1.ServerMaintenance{}
	strict, err := kjson.UnmarshalStrict(object, &m)
	if err == nil {
		err = errors.Join(strict...)
	}
	if err != nil {
		return fmt.Errorf("ServerMaintenance %s: %s", m.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	d.all = append(d.all, m)
	return nil
}
