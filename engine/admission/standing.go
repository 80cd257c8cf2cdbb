// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// Standing asks those rules again that deny by what an object says, as if it were created now: for one that may have
// been stored while no request asked them. Those that also read the user, the former object or the facts are left out,
// because these are not known any more. The error is that of Admit, or says that the rules could not be told apart.
func (p *Policy) Standing(ctx context.Context, kind string, object map[string]any) ([]Finding, error) {
	if p.apart != nil {
		return nil, fmt.Errorf("admission: %w", p.apart)
	}
	return p.denials(ctx, p.standing, Input{Operation: "CREATE", Kind: kind, Object: object})
}

// The codes of findings about rules that Standing leaves out.
const (
	codeAdmissionOnly = "rego-admission-only"
	codeInputWhole    = "rego-input-whole"
)

// onlyAtAdmission are findings about the rules of which Standing does not know what they would say.
func onlyAtAdmission(left []regosandbox.LeftOut) diag.List {
	var found diag.List
	for _, l := range left {
		d := diag.Diagnostic{Severity: diag.Info, Code: codeAdmissionOnly, File: l.File, Line: l.Line, Column: l.Column, Rule: ruleDeny,
			Message: fmt.Sprintf("only admission asks this rule, because it reads input.%s; a claim that is stored while no manager answers "+
				"is not held to it", strings.Join(l.Reads, " and input.")),
			Hint: "where that is not enough, refuse what the claim itself says in a rule of its own"}
		if len(l.Reads) == 0 {
			d.Severity, d.Code = diag.Warning, codeInputWhole
			d.Message = "only admission asks this rule, because it hands the whole input on, so that metalaw cannot tell what it reads. " +
				"A claim that is stored while no manager answers is not held to it"
			d.Hint = "hand on input.object, or what of it the rule needs"
		}
		if !slices.Contains(found, d) {
			found = append(found, d)
		}
	}
	found.Sort()
	return found
}
