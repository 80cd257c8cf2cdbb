// SPDX-License-Identifier: Apache-2.0

package explorer_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/explorer"
)

// badBundle is the shipped default with a mistake that a person might make.
type badBundle struct {
	Mistake string        `json:"mistake"`
	Breaks  explorer.Rule `json:"breaks"`
	Replace []struct {
		Old string `json:"old"`
		New string `json:"new"`
	} `json:"replace"`
}

func shipped(t *testing.T, name string) bundle.Files {
	t.Helper()
	files, err := policies.Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// badBundles are those of testdata/bad, by name.
func badBundles(t *testing.T) map[string]badBundle {
	t.Helper()
	names, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(names) < 10 {
		t.Fatalf("found %d bad bundles: %v", len(names), err)
	}
	all := map[string]badBundle{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var b badBundle
		if err := yaml.UnmarshalStrict(text, &b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".yaml")] = b
	}
	return all
}

// files are the default's, with the mistake. Each text that is replaced must be there exactly once.
func (b badBundle) files(t *testing.T) bundle.Files {
	t.Helper()
	files := maps.Clone(shipped(t, policies.DefaultBundle))
	text := files[bundle.LifecycleFile]
	for _, r := range b.Replace {
		if n := bytes.Count(text, []byte(r.Old)); n != 1 {
			t.Fatalf("found %d times: %q", n, r.Old)
		}
		text = bytes.Replace(text, []byte(r.Old), []byte(r.New), 1)
	}
	files[bundle.LifecycleFile] = text
	return files
}

func explored(t *testing.T, files bundle.Files, o explorer.Options) explorer.Result {
	t.Helper()
	m, err := explorer.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return m.Explore(o)
}

func TestTheExplorerFindsWhatBadBundlesBreak(t *testing.T) {
	for name, b := range badBundles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := explored(t, b.files(t), explorer.Quick)
			for _, v := range r.Violations {
				if v.Rule == b.Breaks {
					t.Logf("%s\n%s", b.Mistake, v)
				}
			}
			if !r.Broke(b.Breaks) {
				t.Errorf("%s\nbreaks %s, and only this was found: %v", b.Mistake, b.Breaks, r.Violations)
			}
		})
	}
}

func TestEveryRuleIsBrokenBySomeBadBundle(t *testing.T) {
	broken := map[explorer.Rule]bool{}
	for _, b := range badBundles(t) {
		broken[b.Breaks] = true
	}
	for _, rule := range explorer.Rules {
		if !broken[rule] {
			t.Errorf("none breaks %s", rule)
		}
	}
}
