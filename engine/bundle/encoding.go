// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/metalaw/metalaw/engine/diag"
)

// NoText reports files that are no UTF-8 text, or that hold a NUL, as UTF-16 does. The API server keeps such a file in
// binaryData, which nothing reads.
func NoText(files Files) diag.List {
	var found diag.List
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data := files[name]
		at := bytes.IndexByte(data, 0)
		if bad := invalid(data); bad >= 0 && (at < 0 || bad < at) {
			at = bad
		}
		if at < 0 {
			continue
		}
		d := diag.Diagnostic{Severity: diag.Error, Code: "file-encoding", File: name, Line: 1 + bytes.Count(data[:at], []byte("\n")),
			Message: "from here on the file is no UTF-8 text", Hint: "save it as UTF-8"}
		d.Column = 1 + utf8.RuneCount(data[bytes.LastIndexByte(data[:at], '\n')+1:at])
		if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) || bytes.Count(data, []byte{0}) > len(data)/4 {
			d.Message = "the file is UTF-16 text"
		} else if data[at] == 0 {
			d.Message, d.Hint = "here is the control character U+0000", "take it out"
		}
		found = append(found, d)
	}
	return found
}

// invalid is where the first byte stands that is no UTF-8; -1 where all is.
func invalid(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}
