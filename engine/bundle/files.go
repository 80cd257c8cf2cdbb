// SPDX-License-Identifier: Apache-2.0

// Package bundle turns the files of a policy bundle into something that can decide: one digest, one compile, one value.
package bundle

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// The names of the files that a bundle may hold. Test files end in _test.rego.
const (
	BundleFile      = "bundle.yaml"
	LifecycleFile   = "lifecycle.yaml"
	SelectionFile   = "selection.rego"
	AdmissionFile   = "admission.rego"
	MACPrefixesFile = "macprefixes.yaml"
	ScenariosFile   = "scenarios.yaml"
)

// FileNames are those that are told by their whole name; any other file of a bundle ends in .rego.
var FileNames = append([]string{PartsFile}, known...)

// maxUnpacked bounds what a packed bundle may grow to. Packing writes some characters with six.
const maxUnpacked = 6*maxTotalBytes + 1<<16

// Files is the content of a bundle by file name.
type Files map[string][]byte

// Digest names the content: the same files have the same digest, wherever and whenever they were read. It has the form
// sha256:<hex>.
func (f Files) Digest() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		h.Write(fmt.Appendf(nil, "%d:%s%d:", len(name), name, len(f[name])))
		h.Write(f[name])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Pack compresses the files. The same files always give the same bytes.
func (f Files) Pack() ([]byte, error) {
	text := make(map[string]string, len(f))
	for name, data := range f {
		text[name] = string(data)
	}
	plain, err := json.Marshal(text) // json sorts the keys
	if err != nil {
		return nil, fmt.Errorf("pack bundle: %w", err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("pack bundle: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack bundle: %w", err)
	}
	return packed.Bytes(), nil
}

// Unpack reads what Pack wrote. It refuses content that grows beyond what a bundle may hold.
func Unpack(packed []byte) (Files, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack bundle: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err != nil {
		return nil, fmt.Errorf("unpack bundle: %w", err)
	}
	if len(plain) > maxUnpacked {
		return nil, fmt.Errorf("unpack bundle: the content is larger than %d bytes", maxUnpacked)
	}
	var text map[string]string
	if err := json.Unmarshal(plain, &text); err != nil {
		return nil, fmt.Errorf("unpack bundle: %w", err)
	}
	files := make(Files, len(text))
	for name, data := range text {
		files[name] = []byte(data)
	}
	return files, nil
}
