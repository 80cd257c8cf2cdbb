// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/diag"
)

// MaxFileBytes is how large one file of a bundle may be. A ConfigMap ends at 1 MiB.
const MaxFileBytes = 1 << 20

// MaxPackedBytes is how large the packed content of a bundle may be: written as base64, beside the rest of the
// PolicyRevision that holds it, it has to stay below what etcd takes in one request (1.5 MiB).
const MaxPackedBytes = 900_000

// What else one bundle may hold.
const (
	maxTotalBytes = 2 << 20
	maxStates     = 64
	maxRules      = 256
)

// tooLarge reports content that is not even looked at.
func tooLarge(files Files) diag.List {
	var found diag.List
	total := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		total += len(files[name])
		if size := len(files[name]); size > MaxFileBytes {
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "limit-file-size", File: name,
				Message: fmt.Sprintf("the file has %d bytes and at most %d are read", size, MaxFileBytes),
				Hint:    "a bundle holds rules, not data: put what differs between servers into their labels, and take out what nothing reads"})
		}
	}
	if len(found) > 0 {
		return found
	}
	over := diag.Diagnostic{Severity: diag.Error, Code: "limit-bundle-size", File: BundleFile,
		Hint: "take out what nothing reads, such as rows of macprefixes.yaml for devices that the fleet does not have"}
	switch packed, err := files.Pack(); {
	case total > maxTotalBytes:
		over.Message = fmt.Sprintf("the files of the bundle have more than %d bytes together", maxTotalBytes)
	case err != nil || len(packed) > MaxPackedBytes:
		over.Message = fmt.Sprintf("the bundle has %d bytes when it is packed, and a PolicyRevision holds at most %d", len(packed), MaxPackedBytes)
	default:
		return nil
	}
	return diag.List{over}
}

// tooMany reports a lifecycle that no person could read.
func (b *Bundle) tooMany() diag.List {
	if b.Lifecycle == nil {
		return nil
	}
	var found diag.List
	over := func(what string, have, most int) {
		if have > most {
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "limit-lifecycle", File: LifecycleFile, Line: 1, Column: 1,
				Message: fmt.Sprintf("the lifecycle has %d %s and may have %d", have, what, most),
				Hint:    "tell servers apart by facts and guards, not by one state for each kind of server"})
		}
	}
	over("states", len(b.Lifecycle.States()), maxStates)
	over("rules", len(lifecycleRules(b.Lifecycle)), maxRules)
	return found
}
