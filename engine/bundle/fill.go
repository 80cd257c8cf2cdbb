// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Filled is the bundle with what it leaves out taken from another. bundle.yaml is always the author's own. The scenarios
// of a lifecycle, and the tests of a Rego file, come with it, unless the author has written others of that name; also where the file
// is a copy of the other's.
func (f Files) Filled(from Files) Files {
	all := maps.Clone(f)
	if all == nil {
		all = Files{}
	}
	for _, name := range []string{LifecycleFile, SelectionFile, AdmissionFile, MACPrefixesFile} {
		if _, own := f[name]; own && !f.taken(name, from) {
			continue
		}
		for _, taken := range []string{name, provenBy(name)} {
			if _, own := f[taken]; own || taken == "" {
				continue
			}
			if data, ok := from[taken]; ok {
				all[taken] = slices.Clone(data)
			}
		}
	}
	return all
}

// provenBy is the file that says what another must do; empty where there is none.
func provenBy(name string) string {
	switch {
	case name == LifecycleFile:
		return ScenariosFile
	case strings.HasSuffix(name, ".rego"):
		return strings.TrimSuffix(name, ".rego") + "_test.rego"
	default:
		return ""
	}
}

// taken says whether a file is that of another bundle, unchanged: what it says was proven there.
func (f Files) taken(name string, from Files) bool {
	theirs, ok := from[name]
	return ok && bytes.Equal(f[name], theirs)
}
