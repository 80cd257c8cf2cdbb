// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
)

// canonical is the same text for placements that ask for the same.
func (p *Placement) canonical() string {
	var b strings.Builder
	fmt.Fprintf(&b, "where %q\n", p.where.text())
	for _, a := range p.alternatives {
		fmt.Fprintf(&b, "alternative %s %q\n", a.selector.Canonical(), a.where.text())
	}
	for _, one := range p.preferred {
		fmt.Fprintf(&b, "preferred %d %q\n", one.weight, one.where.text())
	}
	if s := p.spread; s != nil {
		fmt.Fprintf(&b, "spread %q %d %s\n", s.Key, s.MaxSkew, s.claims.Canonical())
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
