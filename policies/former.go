// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/metalaw/metalaw/engine/bundle"
)

//go:embed former
var former embed.FS

const packedSuffix = ".json.gz"

// Former returns the bundles that earlier builds shipped, by the name of their PolicyRevision. A fleet that promoted nothing since is
// governed by one of them.
func Former() (map[string]bundle.Files, error) {
	entries, err := fs.ReadDir(former, "former")
	if err != nil {
		return nil, fmt.Errorf("former bundles: %w", err)
	}
	all := make(map[string]bundle.Files, len(entries))
	for _, e := range entries {
		packed, err := fs.ReadFile(former, "former/"+e.Name())
		if err != nil {
			return nil, fmt.Errorf("former bundle %s: %w", e.Name(), err)
		}
		files, err := bundle.Unpack(packed)
		if err != nil {
			return nil, fmt.Errorf("former bundle %s: %w", e.Name(), err)
		}
		all[strings.TrimSuffix(e.Name(), packedSuffix)] = files
	}
	return all, nil
}
