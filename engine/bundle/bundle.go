// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/engine/spelling"
	"github.com/metalaw/metalaw/macprefixes"
)

// Bundle is a compiled policy bundle. It is immutable and safe for concurrent use.
type Bundle struct {
	Manifest
	Revision  engine.Revision
	Files     Files
	Lifecycle *lifecycle.Lifecycle
	Selection *selection.Policy
	Admission *admission.Policy
	MACs      *macprefixes.Database
	// Findings are the warnings that did not keep the bundle from being compiled.
	Findings diag.List
	// StandsIn says that the bundle has the place of the revision that it is named after, the content of which is not to be had: it
	// says how machines are reached, and may decide nothing.
	StandsIn bool
}

// Decide evaluates the lifecycle. It is pure and total.
func (b *Bundle) Decide(f engine.Facts) engine.Decision {
	d := b.Lifecycle.Decide(f)
	d.Revision = b.Revision
	return d
}

// Takes says that a server in a state can come under the bundle, which defines the state or says what it migrates to.
func (b *Bundle) Takes(state engine.State) bool {
	if b.Lifecycle.Defines(state) {
		return true
	}
	_, migrates := b.Lifecycle.Migrates(state)
	return migrates
}

// RevisionName is the name of the PolicyRevision that holds a bundle of that name, version and digest.
func RevisionName(name, version, digest string) string {
	short := strings.TrimPrefix(digest, "sha256:")
	if len(short) > 10 {
		short = short[:10]
	}
	return fmt.Sprintf("%s-%s-%s", name, strings.ToLower(strings.ReplaceAll(version, "+", "-")), short)
}

// Compile checks and compiles the files of a bundle. It reports all problems of all files at once and returns nil where
// one of them is an error. It is the quick path for content that was accepted before: nothing is proven and no test is run.
// The error is for mistakes in the vocabulary, which no author can mend.
func Compile(files Files, v *engine.Vocabulary) (*Bundle, diag.List, error) {
	b, found, err := compile(files, v)
	if err != nil || found.HasErrors() {
		return nil, found, err
	}
	return b, found, nil
}

// compile compiles what it can. Parts with errors are nil.
func compile(files Files, v *engine.Vocabulary) (*Bundle, diag.List, error) {
	b := &Bundle{Files: files}
	found := missing(files)
	var problems diag.List
	b.Manifest, problems = parseManifest(files[BundleFile])
	if tooNew := withCode(problems, codeEngine); len(tooNew) > 0 {
		return b, tooNew, nil // what a newer engine understands, this one cannot judge
	}
	found = append(found, present(files, problems)...)
	var err error
	if b.Lifecycle, problems, err = lifecycle.Compile(LifecycleFile, files[LifecycleFile], v); err != nil {
		return nil, nil, err
	}
	found = append(found, present(files, problems)...)
	b.Selection, problems = selection.Compile(files)
	found = append(found, problems...)
	b.Admission, problems = admission.Compile(files)
	found = append(found, problems...)
	b.MACs, problems = parseMACs(files[MACPrefixesFile])
	found = unique(append(found, present(files, problems)...))
	digest := files.Digest()
	b.Revision = engine.Revision{Name: RevisionName(b.Name, b.Version, digest), Version: b.Version, Digest: digest}
	b.Findings = found
	return b, found, nil
}

// withCode keeps the findings of one code.
func withCode(found diag.List, code string) diag.List {
	return slices.DeleteFunc(slices.Clone(found), func(d diag.Diagnostic) bool { return d.Code != code })
}

// present drops what is said of files that the bundle does not have: that they are missing is said already.
func present(files Files, found diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(found), func(d diag.Diagnostic) bool {
		_, ok := files[d.File]
		return !ok
	})
}

// known are the files that a bundle may hold, but for those of Rego tests, which end in _test.rego, and further files of Rego.
var known = []string{BundleFile, LifecycleFile, SelectionFile, AdmissionFile, MACPrefixesFile, ScenariosFile}

// missing reports files that a bundle must have, and files that nothing reads.
func missing(files Files) diag.List {
	var found diag.List
	for _, name := range known {
		if _, ok := files[name]; !ok && name != ScenariosFile {
			hint := "start from a shipped bundle"
			if name == BundleFile {
				hint = "write one with name: and version:, or start from what `metalaw policy init` writes"
			}
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "file-missing", File: name,
				Message: "the bundle has no " + name, Hint: hint})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !slices.Contains(known, name) && !strings.HasSuffix(name, "_test.rego") && !ownPackage(name, files[name]) {
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "file-unknown", File: name,
				Message: "nothing reads a file of this name",
				Hint: meant(name) + "known files: " + strings.Join(known, ", ") + ", *_test.rego, and *.rego in a package of its own, " +
					"such as " + selection.Package + ".NAME"})
		}
	}
	return found
}

// ownPackage says that a file is Rego that selection.rego or admission.rego can use: its package lies below theirs, or
// is that of libraries. A file in their own package would add rules to them that no reader sees there, such as one of a
// misspelt name.
func ownPackage(name string, text []byte) bool {
	if !strings.HasSuffix(name, ".rego") {
		return false
	}
	pkg, ok := regosandbox.PackageOf(name, text)
	return !ok || pkg == regosandbox.Library || slices.ContainsFunc([]string{selection.Package, admission.Package, regosandbox.Library},
		func(above string) bool { return strings.HasPrefix(pkg, above+".") })
}

// meant suggests what to do with a file of that name, or the file whose name is most like it: as a whole, or by the word before the
// first dot.
func meant(name string) string {
	if name == "kustomization.yaml" || name == "kustomization.yml" || name == "Kustomization" {
		return "it says how the ConfigMap is made and is no part of it: take it out, or make the ConfigMap by `kubectl apply --server-side -k DIR`; "
	}
	near := spelling.Nearest(name, known)
	stem, ext, _ := strings.Cut(name, ".")
	for _, k := range known {
		own, ownExt, _ := strings.Cut(k, ".")
		if near == "" && len(stem) > 3 && (strings.HasPrefix(own, stem) || strings.HasPrefix(stem, own)) && ext == ownExt {
			near = k
		}
	}
	if near == "" {
		return ""
	}
	return "did you mean " + near + "? "
}

func parseMACs(data []byte) (*macprefixes.Database, diag.List) {
	db, problems := macprefixes.Parse(MACPrefixesFile, data)
	var found diag.List
	for _, p := range problems {
		found = append(found, diag.Diagnostic{Severity: diag.Severity(p.Severity), Code: p.Code, File: MACPrefixesFile, Line: p.Line,
			Column: p.Column, Message: p.Message, Hint: p.Hint})
	}
	return db, found
}

// unique drops what two compilers say of the same place: both read all Rego files.
func unique(all diag.List) diag.List {
	var kept diag.List
	seen := map[diag.Diagnostic]bool{}
	for _, d := range all {
		if !seen[d] {
			seen[d] = true
			kept = append(kept, d)
		}
	}
	return kept
}
