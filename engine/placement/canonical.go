// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/selection"
)

// canonical is the same text for placements that ask for the same.
func (p *Placement) canonical() string {
	var b strings.Builder
	fmt.Fprintf(&b, "where %q\n", p.where.text())
	for _, a := range p.alternatives {
		fmt.Fprintf(&b, "alternative %s %q\n", selectorText(a.selector), a.where.text())
	}
	for _, one := range p.preferred {
		fmt.Fprintf(&b, "preferred %d %q\n", one.weight, one.where.text())
	}
	if s := p.spread; s != nil {
		fmt.Fprintf(&b, "spread %q %d %s\n", s.Key, s.MaxSkew, selectorText(s.claims))
	}
	if g := p.gang; g != nil {
		fmt.Fprintf(&b, "gang %q %d\n", g.Name, g.Size)
	}
	return b.String()
}

func (e *expression) text() string {
	if e == nil {
		return ""
	}
	return strings.TrimSpace(e.Source)
}

func selectorText(s *selection.Selector) string {
	if s == nil {
		return "-"
	}
	expressions := slices.Clone(s.MatchExpressions)
	slices.SortFunc(expressions, func(a, b selection.Expression) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	})
	return fmt.Sprintf("%q %q", s.MatchLabels, expressions) // fmt sorts the keys of a map
}
