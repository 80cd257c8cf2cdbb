// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
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
	m.paragraph("Conditions follow the conventions of kstatus. `Ready` says that an object is as its spec asks. `Reconciling` says that work is " +
		"under way, and `Stalled` that a user has to act. Each bears the generation that it speaks of. " +
		"A condition of a Server that has nothing to say is left out. What to do about each is in [operations](../operations.md).")
	m.paragraph("On a Server, and in its events, a reason can also be the name of a rule of the bundle in force: " +
		"see [the default lifecycle](../lifecycle.md). A rule's name is its only name: in conditions, events, metrics and logs.")
	inAPI := s.strings(func(f *file, name string) bool {
		return f.path == apiFolder+"/conditions.go" && (strings.HasPrefix(name, "Condition") || strings.HasPrefix(name, "Reason"))
	})
	constantTables(m, s, inAPI)
	inPolicyAPI := s.strings(func(f *file, name string) bool {
		return strings.HasPrefix(f.path, "api/policy/") && (strings.HasPrefix(name, "Condition") || strings.HasPrefix(name, "Reason"))
	})
	constantTables(m, s, inPolicyAPI)
	further := s.strings(func(f *file, name string) bool {
		return !strings.HasPrefix(f.path, "api/") && strings.HasPrefix(name, "Reason")
	})
	furtherReasons(m, s, further)
	m.heading(2, "Codes of servers that a claim cannot have")
	m.paragraph("While a claim waits, the message of its condition `Bound` counts servers by code, such as " +
		"`3 of 40 servers match: taint 2, not-off 1`. A bundle adds codes of its own by its `reject` rules; a bundle's code is not in this list.")
	tableOf(m, []string{"code", "meaning"}, append(selection.Codes(), placement.Codes()...), func(c selection.Code) []string {
		return []string{code(c.Code), c.Meaning}
	})
	m.line("[What to do about each](claim-codes.md).")
	return m.text(), s.wrong
}

// constantTables writes one table for each const block.
func constantTables(m *markdown, s *source, all []constant) {
	for block, constants := range groups(all, func(c constant) string { return c.block }) {
		title, more, _ := strings.Cut(block, "; ")
		if title == "" {
			s.wrong = cmp.Or(s.wrong, fmt.Errorf("%s: %s stands in no block whose comment names it", constants[0].file.path, constants[0].name))
		}
		m.heading(2, "%s", strings.TrimSuffix(s.named(constants[0].file, title), "."))
		if more != "" {
			m.paragraph(strings.ToUpper(more[:1]) + more[1:])
		}
		meanings(m, s, constants)
	}
}

// meanings writes a table of constants.
func meanings(m *markdown, s *source, all []constant) {
	tableOf(m, []string{"", "meaning"}, all, func(c constant) []string { return []string{code(c.value), s.sentence(c)} })
}

// furtherReasons are those that only one controller speaks of.
func furtherReasons(m *markdown, s *source, all []constant) {
	m.heading(2, "Reasons that one part of metalaw gives")
	all = slices.DeleteFunc(all, func(c constant) bool { return c.doc == "" }) // a word of a type whose comment speaks for all
	slices.SortStableFunc(all, func(a, b constant) int { return cmp.Compare(path.Dir(a.file.path), path.Dir(b.file.path)) })
	tableOf(m, []string{"reason", "given by", "meaning"}, all, func(c constant) []string {
		return []string{code(c.value), path.Base(path.Dir(c.file.path)), s.sentence(c)}
	})
}

func annotationsPage(root string) (string, error) {
	s, err := parseFolders(root, "api/v1alpha1", "policies/candidate.go")
	if err != nil {
		return "", err
	}
	m := newPage("Annotations, labels and finalizers", "`api/v1alpha1/names.go` and `policies/candidate.go`")
	m.paragraph("The annotations of `policy.metalaw.dev` that guard data (" + codes([]string{
		s.constants[apiFolder+".ClaimUIDAnnotation"], s.constants[apiFolder+".ReleasedClaimAnnotation"],
		s.constants[apiFolder+".ReleasedAtAnnotation"], s.constants[apiFolder+".ReleasedCountedAnnotation"],
		s.constants[apiFolder+".BindingAnnotation"],
	}) + ") are the manager's alone: admission refuses changes by others. " +
		"Which operations a server accepts depends on its [state](../lifecycle.md); one that is unknown, or that the state cannot use, " +
		"is answered with a Warning event and removed. How to use them is in [operations](../operations.md).")
	m.paragraph("Some names belong to kinds of work that metalaw does not do yet: credential rotation and the metadata service. " +
		"They are listed because the API knows them.")
	constantTables(m, s, s.strings(func(f *file, _ string) bool { return f.path == "api/v1alpha1/names.go" }))
	m.heading(2, "For claims")
	meanings(m, s, s.strings(func(f *file, name string) bool {
		return f.pkg == "policies" && (strings.HasSuffix(name, "Annotation") || name == "RackMetadata")
	}))
	m.line("A priority lies between -%d and %d; what is not a whole number counts as 0. "+
		"The bundle in force can grant less (settings.claims.priority).", policies.MaxPriority, policies.MaxPriority)
	return m.text(), s.wrong
}
