// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"regexp"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// Gang is a group of claims of one namespace that get servers together or not at all.
type Gang struct {
	Name string
	Size int64
}

// Muster is what is known of the members of a gang.
type Muster uint8

const (
	// Incomplete: members are still to come.
	Incomplete Muster = iota
	// Complete: all members are there.
	Complete
	// Contradictory: the members do not agree, or are more than there should be, so that it is not known which are
	// meant.
	Contradictory
)

// MusterOf looks at the claims of one namespace that name the same gang: sizes holds the size that each of them gives. The
// message says what is wrong or missing.
func MusterOf(sizes []int64) (m Muster, message string) {
	for _, size := range sizes {
		if size != sizes[0] {
			return Contradictory, fmt.Sprintf("its members give different sizes: %d and %d", min(size, sizes[0]), max(size, sizes[0]))
		}
	}
	have, size := int64(len(sizes)), int64(0)
	if have > 0 {
		size = sizes[0]
	}
	switch {
	case have == 0:
		return Incomplete, "none of its members exists"
	case have < size:
		return Incomplete, fmt.Sprintf("%d of its %d members exist", have, size)
	case have > size:
		return Contradictory, fmt.Sprintf("%d claims say that they are members, and its size is %d", have, size)
	}
	return Complete, ""
}

var gangName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (p *parser) gang(f yamlpos.Field) {
	g := &Gang{}
	fields := p.file.Fields(f.Value, fieldGang, "name", "size")
	p.require(f.Value, fieldGang, fields, "name", "size")
	for _, field := range fields {
		switch field.Name {
		case "name":
			g.Name = p.file.Text(field.Value, "name")
			if !gangName.MatchString(g.Name) {
				p.file.Errorf(field.Value, "placement-gang", fieldGang, "write lower-case letters, digits and dashes, at most 63",
					"%q is no name of a gang", g.Name)
			}
		case "size":
			g.Size = p.number(field, fieldGang, 2, MaxGang)
		}
	}
	p.out.gang = g
}
