// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"go/ast"
	"path"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

func conditionsPage(root string) (string, error) {
	s, err := parseFolders(root, "api/v1alpha1", "api/policy/v1alpha1",
		"controllers", "metalprobe/registry", "policies/candidate.go", "engine/decision.go", "redfish/errors.go")
	if err != nil {
		return "", err
	}
	m := newPage("Conditions, reasons and codes", "`api/v1alpha1/conditions.go` and the comments of every reason")
	m.paragraph("Conditions follow the conventions of kstatus: `Ready` says that an object is as its spec asks, `Reconciling` that work is " +
		"under way, `Stalled` that somebody has to act. Each bears the generation that it speaks of. " +
		"A condition of a Server that has nothing to say is left out. What to do about each is in [operations](../operations.md).")
	m.paragraph("On a Server, and in its events, a reason can also be the name of a rule of the bundle in force: " +
		"see [the default lifecycle](../lifecycle.md). A rule's name is its only name: in conditions, events, metrics and logs.")
	given := givenBy(s)
	inAPI := s.strings(func(f *file, name string) bool {
		return f.path == apiFolder+"/conditions.go" && (strings.HasPrefix(name, "Condition") || strings.HasPrefix(name, "Reason"))
	})
	if err := constantTables(m, s, inAPI, given); err != nil {
		return "", err
	}
	inPolicyAPI := s.strings(func(f *file, name string) bool {
		return strings.HasPrefix(f.path, "api/policy/") && (strings.HasPrefix(name, "Condition") || strings.HasPrefix(name, "Reason"))
	})
	if err := constantTables(m, s, inPolicyAPI, given); err != nil {
		return "", err
	}
	further := s.strings(func(f *file, name string) bool {
		return !strings.HasPrefix(f.path, "api/") && strings.HasPrefix(name, "Reason")
	})
	if err := furtherReasons(m, s, further); err != nil {
		return "", err
	}
	m.heading(2, "Codes of servers that a claim cannot have")
	m.paragraph("While a claim waits, the message of its condition `Bound` counts servers by code, such as " +
		"`3 of 40 servers match: taint 2, not-off 1`. A bundle adds codes of its own by its `reject` rules; a bundle's code is not in this list.")
	tableOf(m, []string{"code", "meaning"}, append(selection.Codes(), placement.Codes()...), func(c selection.Code) []string {
		return []string{code(c.Code), c.Meaning}
	})
	m.line("[What to do about each](claim-codes.md).")
	return m.text(), nil
}

// constantTables writes one table for each const block.
func constantTables(m *markdown, s *source, all []constant, given func(constant) bool) error {
	for len(all) > 0 {
		block := all[0].block
		n := slices.IndexFunc(all, func(c constant) bool { return c.block != block })
		if n < 0 {
			n = len(all)
		}
		title, more, _ := strings.Cut(block, "; ")
		if title == "" {
			title = "The operation annotation"
		}
		m.heading(2, "%s", strings.TrimSuffix(s.named(all[0].file, title), "."))
		if more != "" {
			m.paragraph(strings.ToUpper(more[:1]) + more[1:])
		}
		var rows [][]string
		for i := range all[:n] {
			text, err := s.sentence(all[i])
			if err != nil {
				return err
			}
			if !given(all[i]) {
				text += " *Not given by this version.*"
			}
			rows = append(rows, []string{code(all[i].value), text})
		}
		m.table([]string{"", "meaning"}, rows)
		all = all[n:]
	}
	return nil
}

// furtherReasons are those that only one controller speaks of.
func furtherReasons(m *markdown, s *source, all []constant) error {
	m.heading(2, "Reasons that one part of metalaw gives")
	slices.SortStableFunc(all, func(a, b constant) int { return cmp.Compare(path.Dir(a.file.path), path.Dir(b.file.path)) })
	var rows [][]string
	for i := range all {
		if all[i].doc == "" {
			continue // a word of a type whose comment speaks for all
		}
		text, err := s.sentence(all[i])
		if err != nil {
			return err
		}
		rows = append(rows, []string{code(all[i].value), path.Base(path.Dir(all[i].file.path)), text})
	}
	m.table([]string{"reason", "given by", "meaning"}, rows)
	return nil
}

func annotationsPage(root string) (string, error) {
	s, err := parseFolders(root, "api/v1alpha1", "policies/candidate.go")
	if err != nil {
		return "", err
	}
	m := newPage("Annotations, labels and finalizers", "`api/v1alpha1/names.go` and `policies/candidate.go`")
	m.paragraph("The annotations of `policy.metalaw.dev` that guard data (" + codes([]string{
		s.constants[apiFolder+".ClaimUIDAnnotation"], s.constants[apiFolder+".ReleasedClaimAnnotation"],
		s.constants[apiFolder+".ReleasedAtAnnotation"], s.constants[apiFolder+".BindingAnnotation"],
	}) + ") are the manager's alone: admission refuses changes by others. " +
		"Which operations a server accepts depends on its [state](../lifecycle.md); one that the state cannot use, or that nobody knows, " +
		"is answered with a Warning event and removed. How to use them is in [operations](../operations.md).")
	m.paragraph("Some names belong to kinds of work that metalaw does not do yet: maintenance, credential rotation and the metadata service. " +
		"They are listed because the API knows them.")
	names := s.strings(func(f *file, name string) bool {
		return f.path == "api/v1alpha1/names.go" || f.pkg == "policies" && strings.HasSuffix(name, "Annotation") || name == "RackMetadata"
	})
	names = slices.DeleteFunc(names, func(c constant) bool { return c.file.pkg == "policies" })
	if err := constantTables(m, s, names, always); err != nil {
		return "", err
	}
	m.heading(2, "For claims")
	further := s.strings(func(f *file, name string) bool {
		return f.pkg == "policies" && (strings.HasSuffix(name, "Annotation") || name == "RackMetadata")
	})
	var rows [][]string
	for i := range further {
		text, err := s.sentence(further[i])
		if err != nil {
			return "", err
		}
		rows = append(rows, []string{code(further[i].value), text})
	}
	m.table([]string{"", "meaning"}, rows)
	m.line("A priority lies between -%d and %d; what is not a whole number counts as 0. "+
		"The bundle in force can grant less (settings.claims.priority).", policies.MaxPriority, policies.MaxPriority)
	return m.text(), nil
}

func always(constant) bool { return true }

// givenBy says whether some code outside the API speaks of a constant, or of its value. What belongs to others is theirs
// to give.
func givenBy(s *source) func(constant) bool {
	spoken := map[string]bool{}
	for _, f := range s.files {
		if strings.HasPrefix(f.path, "api/") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				spoken[f.refersTo(n)] = true
			case *ast.BasicLit: // the engine and the port know no API and give the same words
				if text, ok := s.evaluate(f, n); ok && !strings.HasPrefix(f.path, "controllers/") {
					spoken[text] = true
				}
			}
			return true
		})
	}
	return func(c constant) bool {
		return spoken[c.file.folder()+"."+c.name] || spoken[c.value] || strings.Contains(c.doc, "belongs to")
	}
}
