// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

func TestUnpack(t *testing.T) {
	const image = "\x7fELF module"
	packers := map[string]func(io.Writer) (io.WriteCloser, error){
		"a.ko.zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
		"a.ko.xz":  func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
		"a.ko.gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	}
	for name, packer := range packers {
		var packed bytes.Buffer
		w, err := packer(&packed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, image); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := unpack(&packed, name); err != nil || string(got) != image {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		if _, err := unpack(strings.NewReader("no such packing"), name); err == nil {
			t.Errorf("%s: what is not packed is no error", name)
		}
	}
	if _, err := unpack(strings.NewReader(image), "a.ko.lz4"); err == nil || !strings.Contains(err.Error(), ".ko.zst") {
		t.Errorf("an unknown packing: %v", err)
	}
}

func TestIsPowerKey(t *testing.T) {
	event := func(kind, code uint16, value uint32) []byte {
		text := make([]byte, 24)
		binary.NativeEndian.PutUint16(text[16:], kind)
		binary.NativeEndian.PutUint16(text[18:], code)
		binary.NativeEndian.PutUint32(text[20:], value)
		return text
	}
	for name, c := range map[string]struct {
		event []byte
		want  bool
	}{
		"the power key goes down": {event(1, 116, 1), true},
		"and up":                  {event(1, 116, 0), false},
		"another key":             {event(1, 28, 1), false},
		"a movement":              {event(2, 116, 1), false},
	} {
		if got := isPowerKey(c.event); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestOnlyTheKernelsOwnFirstProcessIsInit(t *testing.T) {
	if Main("v", "") {
		t.Error("a test is taken for the first process")
	}
}

func TestHostPort(t *testing.T) {
	for url, want := range map[string]string{
		"https://r":          "r:443",
		"http://[fd00::1]/x": "[fd00::1]:80",
		"https://r:10000/":   "r:10000",
	} {
		if got := hostPort(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
