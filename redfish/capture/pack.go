// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"maps"
	"slices"
	"strings"
)

// Pack writes a tree as the archive that the emulator reads: name/redfish/v1/.../index.json, compressed. The same tree gives the same
// bytes.
func (t Tree) Pack(w io.Writer, name string) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, uri := range slices.Sorted(maps.Keys(t)) {
		if strings.Contains(uri, "?") {
			continue // a further page of a collection has no place of its own
		}
		body := t[uri]
		header := &tar.Header{Name: name + uri + "/index.json", Mode: 0o644, Size: int64(len(body))}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(body); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}
