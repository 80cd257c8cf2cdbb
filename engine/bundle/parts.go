// SPDX-License-Identifier: Apache-2.0

package bundle

// Parts are the files that a manifest lists, as far as it can be read.
func Parts(manifest string) []Part {
	parts, _, _ := parseParts([]byte(manifest))
	return parts
}

// Is says that a text is the file as the manifest lists it.
func (p Part) Is(text string) bool { return fileDigest(text) == p.Digest }
