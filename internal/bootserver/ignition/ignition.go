// SPDX-License-Identifier: Apache-2.0

// Package ignition renders the ignition of a Secret as boot-operator serves it, within bounds: the text is a tenant's.
package ignition

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	butane "github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
)

// FormatButane is the format of a text that is translated. A text of any other is served as it is.
const FormatButane = "fcos"

// maxOutput bounds what a text is translated to. A Secret has at most 1 MiB, and each of its bytes becomes three at most.
const maxOutput = 4 << 20

// maxCause bounds what is said of a text that cannot be translated, in bytes.
const maxCause = 1024

// Translates says that a text of a format is translated.
func Translates(format string) bool { return strings.TrimSpace(format) == FormatButane }

// Render translates a text of the format fcos from Butane to Ignition, with the library and the options of boot-operator.
func Render(text []byte, format string) ([]byte, error) {
	if !Translates(format) {
		return text, nil
	}
	if err := check(text); err != nil {
		return nil, err
	}
	options := common.TranslateBytesOptions{Raw: true}
	options.NoResourceAutoCompression = true
	translated, report, err := butane.TranslateBytes(text, options)
	if err != nil {
		return nil, fmt.Errorf("the key format is %s, and the ignition is no Butane text: %w: %.*s; "+
			"remove the key format where the text is Ignition JSON", FormatButane, err, maxCause, report.String())
	}
	if len(translated) > maxOutput {
		return nil, fmt.Errorf("the Butane text becomes an ignition of %d bytes, at most %d are served; "+
			"fetch large files by their source", len(translated), maxOutput)
	}
	return translated, nil
}

// Version is a text as it was read: the identity and the resourceVersion of its Secret.
type Version struct{ UID, ResourceVersion string }

// maxKept bounds the translations that a Renderer keeps, in bytes.
const maxKept = 16 << 20

// Renderer translates each version of a text once, and one text at a time, so that machines that ask again cost no memory. The zero
// value is ready.
type Renderer struct {
	mu   sync.Mutex
	kept map[Version]rendered
	size int
}

type rendered struct {
	text []byte
	// problem is why the text cannot be translated; empty where it can.
	problem string
}

// Render gives the translation of a version of a text. A text that is not translated is never kept.
func (r *Renderer) Render(version Version, text []byte, format string) ([]byte, error) {
	if !Translates(format) {
		return text, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, has := r.kept[version]
	if !has {
		known = rendered{}
		var err error
		if known.text, err = Render(text, format); err != nil {
			known.problem = err.Error()
		}
		r.keep(version, known)
	}
	if known.problem != "" {
		return nil, errors.New(known.problem)
	}
	return known.text, nil
}

// keep makes room by forgetting everything: what is needed again is translated again.
func (r *Renderer) keep(version Version, translated rendered) {
	const overhead = 256
	size := len(translated.text) + len(translated.problem) + overhead
	if r.kept == nil || r.size+size > maxKept {
		r.kept, r.size = map[Version]rendered{}, 0
	}
	r.kept[version] = translated
	r.size += size
}
