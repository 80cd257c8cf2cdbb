// SPDX-License-Identifier: Apache-2.0

package bootmedia

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

const (
	isoMaxName  = 128 // what fits into a directory record beside the rest
	isoMaxDepth = 7   // of folders below the root
	isoMaxFile  = 64 << 20
)

// isoNode is a file or a folder of an ISO.
type isoNode struct {
	name     string // as Rock Ridge shows it
	id       string // as plain ISO 9660 shows it
	parent   *isoNode
	folder   bool
	children []*isoNode
	content  []byte
	sector   int64
	size     int64
}

// isoTree makes the tree of folders for files, sorted.
func isoTree(files map[string][]byte) (*isoNode, error) {
	root := &isoNode{folder: true}
	root.parent = root
	for _, path := range slices.Sorted(maps.Keys(files)) {
		elements := strings.Split(path, "/")
		if !fs.ValidPath(path) || path == "." || len(elements) > isoMaxDepth+1 {
			return nil, fmt.Errorf("composing an ISO: file %q: write a path without a leading slash and of at most %d folders", path, isoMaxDepth)
		}
		if len(files[path]) > isoMaxFile {
			return nil, fmt.Errorf("composing an ISO: file %q has %d bytes, and may have %d", path, len(files[path]), isoMaxFile)
		}
		at := root
		for n, name := range elements {
			if len(name) > isoMaxName || strings.ContainsFunc(name, func(r rune) bool { return r < '!' || r > '~' }) {
				return nil, fmt.Errorf("composing an ISO: file %q: name %q is not of 1 to %d printable ASCII characters", path, name, isoMaxName)
			}
			next, err := at.child(name, n < len(elements)-1)
			if err != nil {
				return nil, fmt.Errorf("composing an ISO: file %q: %w", path, err)
			}
			at = next
		}
		at.content, at.size = files[path], int64(len(files[path]))
	}
	root.sortAndName()
	return root, nil
}

func (n *isoNode) child(name string, folder bool) (*isoNode, error) {
	for _, c := range n.children {
		if c.name == name {
			if !c.folder || !folder {
				return nil, fmt.Errorf("%q is a file and a folder at once", name)
			}
			return c, nil
		}
	}
	c := &isoNode{name: name, parent: n, folder: folder}
	n.children = append(n.children, c)
	return c, nil
}

// sortAndName gives each node a plain name that is its own in its folder, and sorts by it.
func (n *isoNode) sortAndName() {
	used := map[string]bool{}
	for _, c := range n.children {
		c.id = plainName(c.name, c.folder, 0)
		for count := 1; used[c.id]; count++ {
			c.id = plainName(c.name, c.folder, count)
		}
		used[c.id] = true
		c.sortAndName()
	}
	slices.SortFunc(n.children, func(a, b *isoNode) int { return strings.Compare(a.id, b.id) })
}

// plainName returns a name in capitals, digits and underscores, with one dot in a file, of at most 30 characters. A count
// tells apart names that would be the same.
func plainName(name string, folder bool, count int) string {
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, strings.ToUpper(s))
	}
	base, extension := name, ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && !folder {
		base, extension = name[:dot], name[dot+1:]
	}
	suffix := ""
	if count > 0 {
		suffix = fmt.Sprintf("_%d", count)
	}
	extension = clean(extension)
	extension = extension[:min(len(extension), 8)]
	base = clean(base)
	base = base[:min(len(base), 29-len(extension)-len(suffix))] + suffix
	if folder {
		return base
	}
	return base + "." + extension + ";1"
}

// folders returns all folders, parents before children, as a path table wants them.
func (n *isoNode) folders() []*isoNode {
	all := []*isoNode{n}
	for at := 0; at < len(all); at++ {
		for _, c := range all[at].children {
			if c.folder {
				all = append(all, c)
			}
		}
	}
	return all
}

// files returns all files in the order of their folders.
func (n *isoNode) files() []*isoNode {
	var all []*isoNode
	for _, folder := range n.folders() {
		for _, c := range folder.children {
			if !c.folder {
				all = append(all, c)
			}
		}
	}
	return all
}

// recordsSize returns the size of the folder, in whole sectors.
func (n *isoNode) recordsSize() int64 { return int64(len(n.records())) }

// records returns the content of the folder: itself, its parent and its children. No record crosses a sector.
func (n *isoNode) records() []byte {
	self := n.attributes()
	if n.parent == n {
		self = slices.Concat(rockRidgeMark(), self, rockRidgeName())
	}
	var all []byte
	add := func(record []byte) {
		if len(all)%isoSector+len(record) > isoSector {
			all = append(all, make([]byte, isoSector-len(all)%isoSector)...)
		}
		all = append(all, record...)
	}
	add(n.record("\x00", self))
	add(n.parent.record("\x01", n.parent.attributes()))
	for _, c := range n.children {
		name := append([]byte{'N', 'M', byte(5 + len(c.name)), 1, 0}, c.name...)
		add(c.record(c.id, append(c.attributes(), name...)))
	}
	return append(all, make([]byte, roundUp(int64(len(all)), isoSector)-int64(len(all)))...)
}

// record returns a directory record, with system use fields (Rock Ridge) behind the name.
func (n *isoNode) record(id string, systemUse []byte) []byte {
	length := 33 + len(id)
	length += length % 2
	b := make([]byte, length, length+len(systemUse)+1)
	bothEndian32(b[2:], n.sector)
	bothEndian32(b[10:], n.size)
	copy(b[18:], []byte{2020 - 1900, 1, 1, 0, 0, 0, 0})
	if n.folder {
		b[25] = 2
	}
	bothEndian16(b[28:], 1)
	b[32] = byte(len(id))
	copy(b[33:], id)
	b = append(b, systemUse...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	b[0] = byte(len(b))
	return b
}

// attributes returns the Rock Ridge field PX: mode, links, owner. Everything belongs to root and can only be read.
func (n *isoNode) attributes() []byte {
	b := make([]byte, 36)
	copy(b, "PX\x24\x01")
	mode, links := int64(0o100444), int64(1)
	if n.folder {
		mode, links = 0o040555, 2
		for _, c := range n.children {
			if c.folder {
				links++
			}
		}
	}
	bothEndian32(b[4:], mode)
	bothEndian32(b[12:], links)
	return b
}

// rockRidgeMark returns the field SP, which announces system use fields.
func rockRidgeMark() []byte { return []byte{'S', 'P', 7, 1, 0xbe, 0xef, 0} }

// rockRidgeName returns the field ER, which says that the fields are Rock Ridge's.
func rockRidgeName() []byte {
	const id = "RRIP_1991A"
	return append([]byte{'E', 'R', 8 + byte(len(id)), 1, byte(len(id)), 0, 0, 1}, id...)
}

// pathTables returns the list of folders in both byte orders.
func pathTables(folders []*isoNode) (little, big []byte) {
	number := map[*isoNode]uint16{}
	for n, folder := range folders {
		number[folder] = uint16(n + 1)
	}
	for _, folder := range folders {
		id := folder.id
		if folder.parent == folder {
			id = "\x00"
		}
		for _, table := range []struct {
			order binary.AppendByteOrder
			to    *[]byte
		}{{binary.LittleEndian, &little}, {binary.BigEndian, &big}} {
			b := append(*table.to, byte(len(id)), 0)
			b = table.order.AppendUint32(b, uint32(folder.sector))
			b = table.order.AppendUint16(b, number[folder.parent])
			b = append(b, id...)
			if len(id)%2 == 1 {
				b = append(b, 0)
			}
			*table.to = b
		}
	}
	return little, big
}
