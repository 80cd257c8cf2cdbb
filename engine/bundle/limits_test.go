// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"math/rand"
	"testing"
)

// noise is text of a size that hardly packs.
func noise(size int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	r := rand.New(rand.NewSource(1))
	text := make([]byte, size)
	for i := range text {
		text[i] = letters[r.Intn(len(letters))]
	}
	return text
}

func TestWhatIsTooLargeToBeStoredIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		files Files
		want  string
	}{
		"one that a PolicyRevision holds":             {Files{"a": noise(1 << 20), "b": noise(80_000)}, ""},
		"one that packs to more than that":            {Files{"a": noise(1 << 20), "b": noise(270_000)}, "limit-bundle-size"},
		"a file that a ConfigMap cannot hold":         {Files{"a": make([]byte, 1<<20+1)}, "limit-file-size"},
		"files that pack well and are too many still": {Files{"a": make([]byte, 1<<20), "b": make([]byte, 1<<20), "c": {1}}, "limit-bundle-size"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, d := range tooLarge(c.files) {
				got += d.Code
			}
			if packed, err := c.files.Pack(); got != c.want || err != nil || c.want == "" && len(packed) > 900_000 {
				t.Errorf("found %q, want %q; %d bytes are packed (%v)", got, c.want, len(packed), err)
			}
		})
	}
}
