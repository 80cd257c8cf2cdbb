// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

func TestTheNamesAreThoseOfTheCompiledBundle(t *testing.T) {
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ name, version, want string }{
		"as it is shipped":      {"", "", Default},
		"with another version":  {"", "9.8.7", "default-9.8.7"},
		"with another name":     {"fleet", "", "fleet-9.8.7"},
		"with both of its own":  {"other", "1.0.0", "other-1.0.0"},
		"with what it had then": {policies.DefaultBundle, Version, Default},
	} {
		own := bundle.Files{}
		for file, data := range files {
			own[file] = data
		}
		if name == "with another name" {
			Rename(own, "", "9.8.7")
		}
		Rename(own, c.name, c.version)
		b, found, err := bundle.Compile(own, policies.Vocabulary())
		if err != nil || found.HasErrors() {
			t.Fatal(err, found)
		}
		if got := b.Name + "-" + b.Version; got != c.want {
			t.Errorf("%s: it is %s, want %s", name, got, c.want)
		}
	}
}
