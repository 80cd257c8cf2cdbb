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

// Complete says whether these are all members of a gang: sizes holds the size that each claim of that name in the namespace
// gives. More claims than the size are as wrong as fewer, because nobody could say which of them are meant.
func Complete(sizes []int64) (ok bool, message string) {
	have := int64(len(sizes))
	if have == 0 {
		return false, "the gang has no members"
	}
	for _, size := range sizes {
		if size != sizes[0] {
			return false, fmt.Sprintf("its members give different sizes, such as %d and %d", sizes[0], size)
		}
	}
	switch size := sizes[0]; {
	case have < size:
		return false, fmt.Sprintf("%d of its %d members exist", have, size)
	case have > size:
		return false, fmt.Sprintf("%d claims say that they are members, and its size is %d", have, size)
	}
	return true, ""
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
