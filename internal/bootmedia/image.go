// SPDX-License-Identifier: Apache-2.0

package bootmedia

import (
	"bytes"
	"fmt"
	"io"
	"sort"
)

// Image is a file that is composed while it is read. It holds its small parts in memory and reads its large ones from
// where they lie. Its methods may be called at the same time from several goroutines, if the large parts allow that.
type Image struct {
	size  int64
	parts []part // sorted, without overlap; what lies between them reads as zeros
}

type part struct {
	offset, size int64
	content      io.ReaderAt
}

// Size returns the number of bytes of the image.
func (i *Image) Size() int64 { return i.size }

// Reader returns a reader of the whole image that can seek, for example for http.ServeContent.
func (i *Image) Reader() *io.SectionReader { return io.NewSectionReader(i, 0, i.size) }

// ReadAt implements io.ReaderAt.
func (i *Image) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("reading boot media at %d: the offset is negative", off)
	}
	if off >= i.size {
		return 0, io.EOF
	}
	short := int64(len(p)) > i.size-off
	if short {
		p = p[:i.size-off]
	}
	first := sort.Search(len(i.parts), func(k int) bool { return i.parts[k].offset+i.parts[k].size > off })
	done := 0
	for _, next := range i.parts[first:] {
		at := off + int64(done)
		if gap := next.offset - at; gap > 0 {
			n := int(min(gap, int64(len(p)-done)))
			clear(p[done : done+n])
			done += n
			at += int64(n)
		}
		if done == len(p) {
			break
		}
		n := int(min(next.offset+next.size-at, int64(len(p)-done)))
		if err := readFull(next, p[done:done+n], at-next.offset); err != nil {
			return done, err
		}
		done += n
	}
	clear(p[done:])
	if short {
		return len(p), io.EOF
	}
	return len(p), nil
}

// readFull reads all of p, and says so when the content is shorter than was announced.
func readFull(from part, p []byte, off int64) error {
	n, err := from.content.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || err == io.EOF:
		return fmt.Errorf("reading boot media: a part of %d bytes ended at %d; it was replaced or cut: compose the image again",
			from.size, off+int64(n))
	default:
		return err
	}
}

// put adds a part that the image reads from content. Parts are put in rising order.
func (i *Image) put(offset, size int64, content io.ReaderAt) {
	if size > 0 {
		i.parts = append(i.parts, part{offset: offset, size: size, content: content})
	}
}

// putBytes adds a part that lies in memory.
func (i *Image) putBytes(offset int64, content []byte) {
	i.put(offset, int64(len(content)), bytes.NewReader(content))
}

// embed adds all parts of another image.
func (i *Image) embed(offset int64, other *Image) {
	for _, p := range other.parts {
		i.put(offset+p.offset, p.size, p.content)
	}
}

// roundUp returns the least multiple of unit that is not below n.
func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }
